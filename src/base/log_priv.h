/* For log.c and its test. */
#pragma once

#include <stdint.h>

struct log_date {
    int year;
    unsigned month; /* 0: January */
    int day;        /* 1 ... 31 */
};

/* Days since 1970 to a date of the Gregorian calendar. */
struct log_date log_date_from_days(int64_t days);
