/* Internals of log.c and log_format.c, for these files and their test. */
#pragma once

#include "base/log.h"

#include <stdint.h>

struct log_date {
    int year;
    unsigned month; /* 0: January */
    int day;        /* 1 ... 31 */
};

/* Converts days since 1970-01-01 to a date of the Gregorian calendar. */
struct log_date log_date_from_days(int64_t days);

/* The parts of a line other than its message. */
struct log_line {
    enum log_level level;
    char role;
    int pid;
    unsigned thread_index;
    int64_t time_ms; /* wall clock */
    long zone_s;     /* seconds by which local time is ahead of UTC */
};

#define LOG_PREFIX_SPACE 160
/* The size of the longest line: escaping may double every byte of a message. */
#define LOG_LINE_SPACE (LOG_PREFIX_SPACE + 2 * LOG_MESSAGE_LIMIT_BYTES + 4)

/* Writes the line with its newline and returns its size. Cuts a message that does not fit. */
size_t log_format_line(char line[LOG_LINE_SPACE], enum log_format format, enum log_time time,
                       const struct log_line *about, const char *message, size_t size);
