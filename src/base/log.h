/* The log. Each message is one line, written with one write(2). Any thread may log. The form of a line:
 *
 *     pid:tid:role DD Mon YYYY HH:MM:SS.mmm level message
 *
 * The role is X (sentinel), C (child), S (replica) or M (master). The level is . (debug), - (verbose), * (notice) or #
 * (warning). `tid` is the thread's number from thread_self_index (0: the main thread). The other form, for programs
 * that read the log, has pairs of names and values:
 *
 *     pid=1 tid=0 role=primary timestamp="..." level=notice message="..."
 *
 * In its messages a backslash precedes quotes and backslashes, \n stands for a newline, and ? for any other control
 * character. The time may also be ISO 8601 with its zone (YYYY-MM-DDTHH:MM:SS.mmm+HH:MM) or milliseconds since 1970.
 *
 * Local time is computed without the C library's locks, so a forked child can log. One thread calls log_update_zone now
 * and then to follow changes to and from summer time.
 *
 * The file is kept open. It may be moved or removed at any time: one thread checks now and then whether the path still
 * names the open file, and otherwise opens the file that the path names. Until then, lines go to the moved file. A
 * forked child closes the descriptors that it inherits and may live longer than the file's name, so it opens the file
 * for each line. An empty path is standard output. Before log_setup, messages of LOG_NOTICE and above go to standard
 * output. */
#pragma once

#include "base/compiler.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_LEVEL_DEBUG = 0, LOG_LEVEL_VERBOSE, LOG_LEVEL_NOTICE, LOG_LEVEL_WARNING, LOG_LEVEL_NOTHING };

#define LOG_MESSAGE_LIMIT_BYTES 1024 /* a longer message is cut; this is done before escaping */

enum log_format { LOG_FORMAT_LINES, LOG_FORMAT_PAIRS, LOG_FORMAT_JSON };
enum log_time { LOG_TIME_DATE, LOG_TIME_ISO_8601, LOG_TIME_MILLISECONDS };

struct log_options {
    const char *path; /* "" or NULL: standard output; copied */
    enum log_level level;
    bool syslog_enabled;
    const char *syslog_ident; /* copied */
    int syslog_facility;      /* LOG_LOCAL0 ... of <syslog.h> */
    char (*role)(void);       /* called in any thread, also from a signal handler; NULL: 'M' */
};

/* May be called again to change all options, while no other thread logs (at start or in an exclusive section). */
void log_setup(const struct log_options *options);
void log_teardown(void);                  /* undoes log_setup */
void log_set_level(enum log_level level); /* any thread, any time */
enum log_level log_get_level(void);       /* any thread, any time */
/* Any thread, any time; log_setup does not change it. */
void log_set_format(enum log_format format, enum log_time time);
bool log_is_to_stdout(void);
void log_update_zone(void);
void log_mark_child(void); /* a forked child calls it once: role C, new pid, opens the file for each line */

/* Both functions reopen the file. One thread calls them, which holds no lock; other threads may log meanwhile. If the
 * file cannot be opened, the old one stays in use. */
void log_reopen_if_moved(void);
void log_reopen_if_asked(void);    /* cheap if log_reopen_from_signal was not called */
void log_reopen_from_signal(void); /* asks for log_reopen_if_asked; async-signal-safe */

bool log_can_open(const char *path); /* false: no line can be appended there; errno has the reason */

extern _Atomic int log_threshold; /* global, atomic: the lowest level that is written; relaxed */

static inline bool log_wants(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&log_threshold, memory_order_relaxed);
}

void log_write(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);
void log_write_list(enum log_level level, const char *format, va_list arguments) PRINTF_LIKE(2, 0);
/* Writes the text unchanged: no prefix, no limit, no newline added. */
void log_raw(enum log_level level, const char *text, size_t size);

/* Arguments are not evaluated if the level is not written. */
#define log_debug(...) (log_wants(LOG_LEVEL_DEBUG) ? log_write(LOG_LEVEL_DEBUG, __VA_ARGS__) : (void)0)
#define log_verbose(...) (log_wants(LOG_LEVEL_VERBOSE) ? log_write(LOG_LEVEL_VERBOSE, __VA_ARGS__) : (void)0)
#define log_notice(...) (log_wants(LOG_LEVEL_NOTICE) ? log_write(LOG_LEVEL_NOTICE, __VA_ARGS__) : (void)0)
#define log_warning(...) (log_wants(LOG_LEVEL_WARNING) ? log_write(LOG_LEVEL_WARNING, __VA_ARGS__) : (void)0)

/* Async-signal-safe. Writes "pid:signal-handler (epoch seconds) message" at level warning. The raw form has no
 * prefix. */
void log_from_signal(const char *message);
void log_from_signal_raw(const char *text, size_t size);
int log_signal_fd(void); /* the descriptor to which log_from_signal* writes; give it to log_signal_fd_done */
void log_signal_fd_done(int fd);
