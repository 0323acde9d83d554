/* Invariants
 *  1. All options except the level are constant while more than one thread logs (see log_setup).
 *  2. A line is formatted on the stack and written by one write(2). There is no lock, so a forked child cannot inherit
 *     a lock that is held. Single writes in append mode do not mix.
 *  3. The number of the file's descriptor is constant, too: dup3 replaces the old file by the reopened one in one step,
 *     so a concurrent write goes to one or the other.
 *  4. Local time is UTC plus an offset that log_update_zone determines; only there the C library takes its zone
 *     lock. */
#include "base/log.h"

#include "base/clock.h"
#include "base/gate.h"
#include "base/log_priv.h"
#include "base/number.h"
#include "base/spinlock.h"
#include "base/status.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define IDENT_SPACE 128

_Atomic int log_threshold = LOG_LEVEL_NOTICE; /* global: see the header */

static char log_path[PATH_MAX]; /* const after setup; "" is standard output */
/* Of the file, of /dev/null as long as that cannot be opened, or -1: opened for each line. Const after setup, then set
 * by the only thread of a forked child. */
static int kept_fd = -1;
static _Atomic bool is_reopen_asked;         /* atomic: relaxed; nothing is handed over with it */
static char syslog_ident[IDENT_SPACE];       /* const after setup; syslog keeps a pointer to it */
static bool syslog_is_enabled;               /* const after setup */
static char (*role_fn)(void);                /* const after setup */
static bool is_child;                        /* set by the only thread of a forked child */
static _Atomic long zone_offset_s;           /* atomic: relaxed */
static _Atomic int line_format, time_format; /* atomic, relaxed: enum log_format, enum log_time */

void log_update_zone(void)
{
    time_t now = time(NULL);
    struct tm local;

    tzset();
    if (localtime_r(&now, &local) != NULL)
        atomic_store_explicit(&zone_offset_s, local.tm_gmtoff, memory_order_relaxed);
}

/* -------------------------------------------------------------------------------------------------- descriptors -- */

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

/* Not among the standard streams, also where the process was started without them: they are given new meanings. */
static void keep_open(void)
{
    int fd = open_file(log_path);

    if (fd < 0)
        fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    kept_fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd >= 0)
        close(fd);
}

static void let_go(void)
{
    if (kept_fd >= 0)
        close(kept_fd);
    kept_fd = -1;
}

static void reopen(void)
{
    int fd = kept_fd < 0 ? -1 : open_file(log_path);

    if (fd < 0)
        return;
    while (dup3(fd, kept_fd, O_CLOEXEC) < 0 && errno == EINTR)
        ;
    close(fd);
}

void log_reopen_if_moved(void)
{
    struct stat kept, named;
    bool is_named;

    spinlock_assert_may_sleep();
    if (kept_fd < 0 || fstat(kept_fd, &kept) != 0)
        return;
    is_named = stat(log_path, &named) == 0;
    if (!is_named || kept.st_dev != named.st_dev || kept.st_ino != named.st_ino)
        reopen();
}

void log_reopen_from_signal(void)
{
    atomic_store_explicit(&is_reopen_asked, true, memory_order_relaxed);
}

void log_reopen_if_asked(void)
{
    spinlock_assert_may_sleep();
    if (atomic_load_explicit(&is_reopen_asked, memory_order_relaxed) &&
        atomic_exchange_explicit(&is_reopen_asked, false, memory_order_relaxed))
        reopen();
}

int log_signal_fd(void)
{
    if (log_path[0] == '\0')
        return STDOUT_FILENO;
    return kept_fd >= 0 ? kept_fd : open_file(log_path);
}

void log_signal_fd_done(int fd)
{
    if (fd >= 0 && fd != STDOUT_FILENO && fd != kept_fd)
        close(fd);
}

bool log_can_open(const char *path)
{
    int fd = open_file(path);

    if (fd < 0)
        return false;
    close(fd);
    return true;
}

/* -------------------------------------------------------------------------------------------------------- setup -- */

void log_setup(const struct log_options *options)
{
    gate_assert_alone();
    if (syslog_is_enabled)
        closelog();
    let_go();
    snprintf(log_path, sizeof(log_path), "%s", options->path == NULL ? "" : options->path);
    if (log_path[0] != '\0')
        keep_open();
    role_fn = options->role;
    syslog_is_enabled = options->syslog_enabled;
    if (syslog_is_enabled) {
        snprintf(syslog_ident, sizeof(syslog_ident), "%s",
                 options->syslog_ident == NULL ? "keydb" : options->syslog_ident);
        openlog(syslog_ident, LOG_PID | LOG_NDELAY | LOG_NOWAIT, options->syslog_facility);
    }
    log_set_level(options->level);
    log_update_zone();
}

void log_teardown(void)
{
    log_setup(&(struct log_options){.level = LOG_LEVEL_NOTICE});
}

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&log_threshold, (int)level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
    return (enum log_level)atomic_load_explicit(&log_threshold, memory_order_relaxed);
}

void log_set_format(enum log_format format, enum log_time time)
{
    atomic_store_explicit(&line_format, (int)format, memory_order_relaxed);
    atomic_store_explicit(&time_format, (int)time, memory_order_relaxed);
}

bool log_is_to_stdout(void)
{
    return log_path[0] == '\0';
}

void log_mark_child(void)
{
    is_child = true;
    let_go();
}

/* ------------------------------------------------------------------------------------------------------ writing -- */

/* A log that cannot be written has nobody to be told: what fails here is dropped. */
static void write_out(const char *text, size_t size)
{
    int fd = log_signal_fd();

    while (fd >= 0 && size > 0) {
        ssize_t got = write(fd, text, size);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        text += got;
        size -= (size_t)got;
    }
    log_signal_fd_done(fd);
}

static void to_syslog(enum log_level level, const char *message, size_t size)
{
    static const int priorities[] = {LOG_DEBUG, LOG_INFO, LOG_NOTICE, LOG_WARNING};

    if (syslog_is_enabled)
        syslog(priorities[level], "%.*s", (int)size, message);
}

static char role_letter(void)
{
    if (is_child)
        return 'C';
    return role_fn == NULL ? 'M' : role_fn();
}

void log_write(enum log_level level, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    log_write_list(level, format, arguments);
    va_end(arguments);
}

void log_write_list(enum log_level level, const char *format, va_list arguments)
{
    char message[LOG_MESSAGE_LIMIT_BYTES], line[LOG_LINE_SPACE];
    struct log_line about = {.level = level};
    int error = errno, size;

    if (!log_wants(level) || level >= LOG_LEVEL_NOTHING)
        return;
    spinlock_assert_may_sleep();
    size = vsnprintf(message, sizeof(message), format, arguments); /* %m: errno is as it was */
    size = MIN(MAX(size, 0), LOG_MESSAGE_LIMIT_BYTES - 1);
    about.role = role_letter();
    about.pid = (int)getpid();
    about.thread_index = thread_self_index();
    about.time_ms = clock_wall_ms();
    about.zone_s = atomic_load_explicit(&zone_offset_s, memory_order_relaxed);
    write_out(line, log_format_line(line, (enum log_format)atomic_load_explicit(&line_format, memory_order_relaxed),
                                    (enum log_time)atomic_load_explicit(&time_format, memory_order_relaxed), &about,
                                    message, (size_t)size));
    to_syslog(level, message, (size_t)size);
    errno = error;
}

void log_raw(enum log_level level, const char *text, size_t size)
{
    int error = errno;

    if (!log_wants(level) || level >= LOG_LEVEL_NOTHING)
        return;
    spinlock_assert_may_sleep();
    write_out(text, size);
    to_syslog(level, text, MIN(size, (size_t)INT_MAX));
    errno = error;
}

void log_from_signal(const char *message)
{
    char prefix[2 * NUMBER_I64_SPACE + 32];
    size_t size = number_format_u64(prefix, (uint64_t)getpid());
    int fd = log_signal_fd();

    memcpy(prefix + size, ":signal-handler (", 17);
    size += 17;
    size += number_format_u64(prefix + size, (uint64_t)time(NULL));
    memcpy(prefix + size, ") ", 2);
    size += 2;
    struct iovec parts[] = {{prefix, size},
                            {(void *)(uintptr_t)message, strlen(message)},
                            {(void *)(uintptr_t) "\n", 1}};
    if (fd >= 0)
        status_ignore(writev(fd, parts, countof(parts)), "there is nobody to tell");
    log_signal_fd_done(fd);
}

void log_from_signal_raw(const char *text, size_t size)
{
    write_out(text, size);
}
