#include "base/log_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* -------------------------------------------------------------------------------------------------------- times -- */

struct local_time {
    struct log_date date;
    int hour, minute, second, ms;
};

static struct local_time local_time(const struct log_line *about)
{
    int64_t ms = about->time_ms + about->zone_s * 1000, seconds = ms / 1000;
    int second_of_day = (int)(seconds % 86400);

    return (struct local_time){.date = log_date_from_days(seconds / 86400),
                               .hour = second_of_day / 3600,
                               .minute = second_of_day / 60 % 60,
                               .second = second_of_day % 60,
                               .ms = (int)(ms % 1000)};
}

static int put_date(char *text, size_t space, const struct log_line *about)
{
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct local_time now = local_time(about);

    return snprintf(text, space, "%02d %s %d %02d:%02d:%02d.%03d", now.date.day, months[now.date.month % 12],
                    now.date.year, now.hour, now.minute, now.second, now.ms);
}

static int put_iso_8601(char *text, size_t space, const struct log_line *about)
{
    struct local_time now = local_time(about);
    int zone_minutes = (int)(labs(about->zone_s) / 60);

    return snprintf(text, space, "%04d-%02u-%02dT%02d:%02d:%02d.%03d%c%02d:%02d", now.date.year, now.date.month + 1,
                    now.date.day, now.hour, now.minute, now.second, now.ms, about->zone_s < 0 ? '-' : '+',
                    zone_minutes / 60 % 100, zone_minutes % 60);
}

static int put_time(char *text, size_t space, enum log_time time, const struct log_line *about)
{
    switch (time) {
    case LOG_TIME_ISO_8601:
        return put_iso_8601(text, space, about);
    case LOG_TIME_MILLISECONDS:
        return snprintf(text, space, "%lld", (long long)about->time_ms);
    case LOG_TIME_DATE:
        break;
    }
    return put_date(text, space, about);
}

/* -------------------------------------------------------------------------------------------------------- lines -- */

static size_t put_lines_prefix(char *line, enum log_time time, const struct log_line *about)
{
    static const char marks[] = {'.', '-', '*', '#'};
    int size = snprintf(line, LOG_PREFIX_SPACE, "%d:%u:%c ", about->pid, about->thread_index, about->role);

    size += put_time(line + size, LOG_PREFIX_SPACE - (size_t)size, time, about);
    size += snprintf(line + size, LOG_PREFIX_SPACE - (size_t)size, " %c ", marks[about->level]);
    return (size_t)size;
}

static const char *role_name(char role)
{
    return role == 'X' ? "sentinel" : role == 'C' ? "child" : role == 'S' ? "replica" : "primary";
}

static size_t put_pairs_prefix(char *line, bool is_json, enum log_time time, const struct log_line *about)
{
    static const char *const levels[] = {"debug", "verbose", "notice", "warning"};
    int size = snprintf(line, LOG_PREFIX_SPACE,
                        is_json ? "{\"pid\":%d,\"tid\":%u,\"role\":\"%s\",\"timestamp\":\""
                                : "pid=%d tid=%u role=%s timestamp=\"",
                        about->pid, about->thread_index, role_name(about->role));

    size += put_time(line + size, LOG_PREFIX_SPACE - (size_t)size, time, about);
    size += snprintf(line + size, LOG_PREFIX_SPACE - (size_t)size,
                     is_json ? "\",\"level\":\"%s\",\"message\":\"" : "\" level=%s message=\"", levels[about->level]);
    return (size_t)size;
}

/* Size of the UTF-8 character at the beginning; 0: there is none, nor may it be in JSON. */
static size_t character_size(const unsigned char *text, size_t size)
{
    /* The least and the most of the second byte keep out what has a shorter form, surrogates, and what is too large. */
    const unsigned char first = text[0], second = size > 1 ? text[1] : 0;
    const size_t length = first < 0x80   ? 1
                          : first < 0xC2 ? 0
                          : first < 0xE0 ? 2
                          : first < 0xF0 ? 3
                          : first < 0xF5 ? 4
                                         : 0;
    const unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;

    if (length < 2)
        return length;
    if (length > size || second < least || second > most)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    }
    return length;
}

/* Returns the end of the written text: at most two bytes for each byte. What is no character becomes '?' in JSON. */
static char *put_escaped(char *at, bool is_json, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char byte = text[i];

        if (is_json && (unsigned char)byte >= 0x80) {
            const size_t length = character_size((const unsigned char *)text + i, size - i);

            if (length == 0) {
                *at++ = '?';
                continue;
            }
            memcpy(at, text + i, length);
            at += length;
            i += length - 1;
            continue;
        }
        if (byte == '"' || byte == '\\' || byte == '\n')
            *at++ = '\\';
        if (byte == '\n')
            *at++ = 'n';
        else
            *at++ = (unsigned char)byte < ' ' || byte == 0x7F ? '?' : byte;
    }
    return at;
}

size_t log_format_line(char line[LOG_LINE_SPACE], enum log_format format, enum log_time time,
                       const struct log_line *about, const char *message, size_t size)
{
    char *at = line;

    size = size < LOG_MESSAGE_LIMIT_BYTES ? size : LOG_MESSAGE_LIMIT_BYTES;
    if (format != LOG_FORMAT_LINES) {
        const bool is_json = format == LOG_FORMAT_JSON;

        at = put_escaped(at + put_pairs_prefix(line, is_json, time, about), is_json, message, size);
        *at++ = '"';
        if (is_json)
            *at++ = '}';
    } else {
        at += put_lines_prefix(line, time, about);
        memcpy(at, message, size);
        at += size;
    }
    *at++ = '\n';
    return (size_t)(at - line);
}
