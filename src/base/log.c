/* Invariants
 *  1. All options but the level are constant while more than one thread logs (see log_setup).
 *  2. A line is formatted on the stack and written by one write(2); there is no lock, so a forked child cannot inherit
 *     a taken one. Appending writes of one call do not mix.
 *  3. Local time is UTC plus an offset that log_update_zone learned; only there the C library takes its zone lock. */
#include "base/log.h"

#include "base/clock.h"
#include "base/log_priv.h"
#include "base/number.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define IDENT_SPACE 128

_Atomic int log_threshold = LOG_LEVEL_NOTICE; /* global: see the header */

static char log_path[PATH_MAX];       /* const after setup; "" is standard output */
static char syslog_ident[IDENT_SPACE]; /* const after setup; syslog keeps a pointer to it */
static bool syslog_is_enabled;        /* const after setup */
static char (*role_fn)(void);         /* const after setup */
static bool is_child;                 /* set by the only thread of a forked child */
static _Atomic long zone_offset_s;    /* atomic: relaxed */

static const char level_marks[] = {'.', '-', '*', '#'};

void log_update_zone(void)
{
    time_t now = time(NULL);
    struct tm local;

    tzset();
    if (localtime_r(&now, &local) != NULL)
        atomic_store_explicit(&zone_offset_s, local.tm_gmtoff, memory_order_relaxed);
}

void log_setup(const struct log_options *options)
{
    if (syslog_is_enabled)
        closelog();
    snprintf(log_path, sizeof(log_path), "%s", options->path == NULL ? "" : options->path);
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

bool log_is_to_stdout(void)
{
    return log_path[0] == '\0';
}

void log_mark_child(void)
{
    is_child = true;
}

int log_signal_fd(void)
{
    if (log_path[0] == '\0')
        return STDOUT_FILENO;
    return open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

void log_signal_fd_done(int fd)
{
    if (fd >= 0 && fd != STDOUT_FILENO)
        close(fd);
}

bool log_can_open(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0)
        return false;
    close(fd);
    return true;
}

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

/* Years are counted from the first of March, so that the leap day
 * is the last of a year; 400 of them always have 146097 days. */
struct log_date log_date_from_days(int64_t days)
{
    int64_t shifted = days + 719468; /* since 0000-03-01 */
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_from_march = (5 * day_of_year + 2) / 153;
    unsigned month = (unsigned)(month_from_march < 10 ? month_from_march + 2 : month_from_march - 10);

    return (struct log_date){
        .year = (int)(year_of_era + era * 400) + (month < 2),
        .month = month,
        .day = (int)(day_of_year - (153 * month_from_march + 2) / 5) + 1,
    };
}

static char role_letter(void)
{
    if (is_child)
        return 'C';
    return role_fn == NULL ? 'M' : role_fn();
}

static size_t format_prefix(char *line, size_t space, enum log_level level)
{
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    int64_t local_ms = clock_wall_ms() + atomic_load_explicit(&zone_offset_s, memory_order_relaxed) * 1000;
    int64_t seconds = local_ms / 1000;
    int64_t second_of_day = seconds % 86400;
    struct log_date date = log_date_from_days(seconds / 86400);

    return (size_t)snprintf(line, space, "%d:%u:%c %02d %s %d %02d:%02d:%02d.%03d %c ", (int)getpid(),
                            thread_self_index(), role_letter(), date.day, months[date.month % 12], date.year,
                            (int)(second_of_day / 3600), (int)(second_of_day / 60 % 60), (int)(second_of_day % 60),
                            (int)(local_ms % 1000), level_marks[level]);
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
    char line[LOG_MESSAGE_LIMIT_BYTES + 128];
    int error = errno;
    size_t prefix_size;
    int size;

    if (!log_wants(level) || level >= LOG_LEVEL_NOTHING)
        return;
    prefix_size = format_prefix(line, 128, level);
    errno = error; /* %m */
    size = vsnprintf(line + prefix_size, LOG_MESSAGE_LIMIT_BYTES, format, arguments);
    size = MIN(MAX(size, 0), LOG_MESSAGE_LIMIT_BYTES - 1);
    line[prefix_size + (size_t)size] = '\n';
    write_out(line, prefix_size + (size_t)size + 1);
    to_syslog(level, line + prefix_size, (size_t)size);
    errno = error;
}

void log_raw(enum log_level level, const char *text, size_t size)
{
    int error = errno;

    if (!log_wants(level) || level >= LOG_LEVEL_NOTHING)
        return;
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
    struct iovec parts[] = {
        {prefix, size}, {(void *)(uintptr_t)message, strlen(message)}, {(void *)(uintptr_t) "\n", 1}};
    if (fd >= 0 && writev(fd, parts, countof(parts)) < 0)
        errno = 0; /* there is nobody to tell */
    log_signal_fd_done(fd);
}

void log_from_signal_raw(const char *text, size_t size)
{
    write_out(text, size);
}
