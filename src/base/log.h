/* The log: one line a message, one write(2) a line, any thread. Form:
 *
 *     pid:tid:role DD Mon YYYY HH:MM:SS.mmm level message
 *
 * role X sentinel, C child, S replica, M master; level . debug, - verbose, * notice, # warning. `tid` is the number of
 * thread_self_index (0: the main thread). Or, for programs that read it, as pairs of names and values:
 *
 *     pid=1 tid=0 role=primary timestamp="..." level=notice message="..."
 *
 * where in a message a backslash stands before quotes and backslashes, \n for a newline, and ? for any other control
 * character. The time may also be ISO 8601 with its zone (YYYY-MM-DDTHH:MM:SS.mmm+HH:MM) or milliseconds since 1970.
 *
 * Local time is computed without the C library's locks, so that a forked child
 * can log; log_update_zone, called now and then by one thread, learns about summer time.
 * The file is kept open, and may be moved away or removed at any time: one thread asks now and then whether it still is
 * what the path names, and opens what is there now. Until then lines go to where it was moved. A forked child, which
 * closes what it inherits and may live longer than the file's name, opens the file for each line. An empty path is
 * standard output. Before log_setup everything from LOG_NOTICE up goes to standard output. */
#pragma once

#include "base/compiler.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_LEVEL_DEBUG = 0, LOG_LEVEL_VERBOSE, LOG_LEVEL_NOTICE, LOG_LEVEL_WARNING, LOG_LEVEL_NOTHING };

#define LOG_MESSAGE_LIMIT_BYTES 1024 /* a longer message is cut, before anything in it is escaped */

enum log_format { LOG_FORMAT_LINES, LOG_FORMAT_PAIRS };
enum log_time { LOG_TIME_DATE, LOG_TIME_ISO_8601, LOG_TIME_MILLISECONDS };

struct log_options {
    const char *path; /* "" or NULL: standard output; copied */
    enum log_level level;
    bool syslog_enabled;
    const char *syslog_ident; /* copied */
    int syslog_facility;      /* LOG_LOCAL0 ... of <syslog.h> */
    char (*role)(void);       /* any thread, also from a signal handler; NULL: 'M' */
};

/* May be called again to change everything, while no other thread logs (at start or in an exclusive section). */
void log_setup(const struct log_options *options);
void log_teardown(void);                  /* back to the state before log_setup */
void log_set_level(enum log_level level); /* any thread, any time */
enum log_level log_get_level(void);
void log_set_format(enum log_format format, enum log_time time); /* any thread, any time; log_setup leaves it alone */
bool log_is_to_stdout(void);
void log_update_zone(void);
void log_mark_child(void); /* a forked child says so once: role C, new pid, and see above */

/* Opening the file again: both in one thread, which holds no lock; other threads log meanwhile. A file that cannot be
 * opened leaves the old one in use. */
void log_reopen_if_moved(void);
void log_reopen_if_asked(void);    /* cheap if not */
void log_reopen_from_signal(void); /* asks for it; async-signal-safe */

bool log_can_open(const char *path); /* can a line be appended there? errno says why not */

extern _Atomic int log_threshold; /* global, atomic: the least level written; relaxed */

static inline bool log_wants(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&log_threshold, memory_order_relaxed);
}

void log_write(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);
void log_write_list(enum log_level level, const char *format, va_list arguments) PRINTF_LIKE(2, 0);
void log_raw(enum log_level level, const char *text, size_t size); /* as it is: no prefix, no limit, no newline added */

/* Arguments are not evaluated when the level is not wanted. */
#define log_debug(...) (log_wants(LOG_LEVEL_DEBUG) ? log_write(LOG_LEVEL_DEBUG, __VA_ARGS__) : (void)0)
#define log_verbose(...) (log_wants(LOG_LEVEL_VERBOSE) ? log_write(LOG_LEVEL_VERBOSE, __VA_ARGS__) : (void)0)
#define log_notice(...) (log_wants(LOG_LEVEL_NOTICE) ? log_write(LOG_LEVEL_NOTICE, __VA_ARGS__) : (void)0)
#define log_warning(...) (log_wants(LOG_LEVEL_WARNING) ? log_write(LOG_LEVEL_WARNING, __VA_ARGS__) : (void)0)

/* Async-signal-safe: "pid:signal-handler (epoch seconds) message". Level warning, or raw without prefix. */
void log_from_signal(const char *message);
void log_from_signal_raw(const char *text, size_t size);
int log_signal_fd(void); /* where log_from_signal* writes; to be given to log_signal_fd_done */
void log_signal_fd_done(int fd);
