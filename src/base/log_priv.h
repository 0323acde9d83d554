/* For log.c, log_format.c and their test. */
#pragma once

#include "base/log.h"

#include <stdint.h>

struct log_date {
    int year;
    unsigned month; /* 0: January */
    int day;        /* 1 ... 31 */
};

/* Days since 1970 to a date of the Gregorian calendar. */
struct log_date log_date_from_days(int64_t days);

/* What a line says beside its message. */
struct log_line {
    enum log_level level;
    char role;
    int pid;
    unsigned thread_index;
    int64_t time_ms; /* wall clock */
    long zone_s;     /* local time is so much later than UTC */
};

#define LOG_PREFIX_SPACE 160
/* The longest line: every byte of a message may become two. */
#define LOG_LINE_SPACE (LOG_PREFIX_SPACE + 2 * LOG_MESSAGE_LIMIT_BYTES + 4)

/* Writes the line with its newline and returns its size. The message is cut to what fits. */
size_t log_format_line(char line[LOG_LINE_SPACE], enum log_format format, enum log_time time,
                       const struct log_line *about, const char *message, size_t size);
