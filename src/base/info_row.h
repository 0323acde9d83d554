/* Fields of INFO as data, declared next to the part that they describe. server/observe/info_order.c has the list of
 * fields and their order. A part publishes a table, and main.c gives all tables to INFO.
 *
 *     static void take(void *picture, const struct info_moment *moment) { ... }
 *     static const struct info_source source = {sizeof(struct rendezvous_stats), .take = take};
 *     const struct info_row rendezvous_info[] = {
 *         INFO_FIELD("rendezvous_count", &source, struct rendezvous_stats, count),
 *         INFO_CALL("tracking_total_keys", tracking_table_key_count),
 *         INFO_TEXT("role", "master"),
 *         {0},
 *     };
 *
 * One answer shows one moment: before its first line is written, each source that it needs is called once, and the rows
 * print the values in these pictures. */
#pragma once

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

/* The time at which the answer began. */
struct info_moment {
    int64_t wall_us;
    uint64_t monotonic_us;
};

/* A source of values for rows. */
struct info_source {
    size_t bytes; /* size of its picture */
    /* Fills the whole picture, in any thread; the gate may be closed. The picture is not on the heap. */
    void (*take)(void *picture, const struct info_moment *moment);
    /* For crash reports, async-signal-safe: fills the members for rows with INFO_SAFE. False: the values are
     * unknown. */
    bool (*take_safe)(void *picture, const struct info_moment *moment);
};

enum info_form {
    INFO_FORM_TEXT,      /* `text` */
    INFO_FORM_CALL_TEXT, /* the result of `call_text` */
    INFO_FORM_CALL,      /* the result of `call` */
    INFO_FORM_OPTION,    /* unsigned */
    INFO_FORM_VALUE,     /* `append` writes the value */
    INFO_FORM_LINES,     /* `append` writes whole lines, or none */
    INFO_FORM_U64,       /* this and all below: a member of the picture */
    INFO_FORM_I64,
    INFO_FORM_UNSIGNED,
    INFO_FORM_BOOL, /* 0 or 1 */
    INFO_FORM_OK,   /* a bool: ok or err */
    INFO_FORM_HEX,
    INFO_FORM_MS,         /* microseconds */
    INFO_FORM_HUMAN,      /* bytes: 1.50M */
    INFO_FORM_DOUBLE,     /* two digits after the point */
    INFO_FORM_ROUNDED,    /* a double */
    INFO_FORM_TIME,       /* seconds, with microseconds */
    INFO_FORM_WORD,       /* const char * */
    INFO_FORM_RATIO,      /* divided by `other`; two digits after the point */
    INFO_FORM_PERCENT,    /* likewise, as 12.34% */
    INFO_FORM_DIFFERENCE, /* minus `other`; may be negative */
};

struct info_row {
    const char *name; /* "used_memory"; LINES: the common prefix of the lines; NULL ends a table */
    enum info_form form;
    bool is_safe;                     /* INFO_SAFE */
    size_t member, other;             /* offsets in the picture */
    const struct info_source *source; /* NULL: there is no picture */
    const char *text;
    const char *(*call_text)(void);
    uint64_t (*call)(void);
    const _Atomic int64_t *option;
    void (*append)(struct buffer *buffer, const void *picture);
    bool (*wanted)(const void *picture); /* NULL: always */
};

/* After the arguments of each macro there may be members of the row, such as .wanted = has_file, or INFO_SAFE: crash
 * reports print the field, too. Such a field is a whole number or a text, and its functions are async-signal-safe. */
#define INFO_SAFE .is_safe = true

#define INFO_TEXT(name_, text_, ...)                                            \
    {                                                                           \
        .name = (name_), .form = INFO_FORM_TEXT, .text = (text_), ##__VA_ARGS__ \
    }
#define INFO_CALL_TEXT(name_, call_, ...)                                                 \
    {                                                                                     \
        .name = (name_), .form = INFO_FORM_CALL_TEXT, .call_text = (call_), ##__VA_ARGS__ \
    }
#define INFO_CALL(name_, call_, ...)                                            \
    {                                                                           \
        .name = (name_), .form = INFO_FORM_CALL, .call = (call_), ##__VA_ARGS__ \
    }
#define INFO_OPTION(name_, option_, ...)                                               \
    {                                                                                  \
        .name = (name_), .form = INFO_FORM_OPTION, .option = &(option_), ##__VA_ARGS__ \
    }
#define INFO_VALUE(name_, source_, append_, ...)                                                          \
    {                                                                                                     \
        .name = (name_), .form = INFO_FORM_VALUE, .source = (source_), .append = (append_), ##__VA_ARGS__ \
    }
#define INFO_LINES(name_, source_, append_, ...)                                                          \
    {                                                                                                     \
        .name = (name_), .form = INFO_FORM_LINES, .source = (source_), .append = (append_), ##__VA_ARGS__ \
    }

/* A member of the source's picture, a struct of type `type_`: a number, a bool, a time or a text. */
#define INFO_FIELD(name_, source_, type_, member_, ...) \
    INFO_FIELD_(name_, source_, type_, member_, \
                _Generic(((type_ *)0)->member_, \
                         uint64_t: INFO_FORM_U64, \
                         int64_t: INFO_FORM_I64, \
                         unsigned: INFO_FORM_UNSIGNED, \
                         bool: INFO_FORM_BOOL, \
                         double: INFO_FORM_DOUBLE, \
                         struct timeval: INFO_FORM_TIME, \
                         const char *: INFO_FORM_WORD), \
                ##__VA_ARGS__)
/* The same in another form; its members must have the right type. */
#define INFO_OK(name_, source_, type_, member_, ...) \
    INFO_FIELD_(name_, source_, type_, member_, _Generic(((type_ *)0)->member_, bool : INFO_FORM_OK), ##__VA_ARGS__)
#define INFO_HEX(...) INFO_U64_(INFO_FORM_HEX, __VA_ARGS__)
#define INFO_MS(...) INFO_U64_(INFO_FORM_MS, __VA_ARGS__)
#define INFO_HUMAN(...) INFO_U64_(INFO_FORM_HUMAN, __VA_ARGS__)
#define INFO_ROUNDED(name_, source_, type_, member_, ...) \
    INFO_FIELD_(name_, source_, type_, member_,           \
                _Generic(((type_ *)0)->member_, double    \
                         : INFO_FORM_ROUNDED),            \
                ##__VA_ARGS__)
#define INFO_RATIO(...) INFO_TWO_(INFO_FORM_RATIO, __VA_ARGS__)
#define INFO_PERCENT(...) INFO_TWO_(INFO_FORM_PERCENT, __VA_ARGS__)
#define INFO_DIFFERENCE(...) INFO_TWO_(INFO_FORM_DIFFERENCE, __VA_ARGS__)

#define INFO_FIELD_(name_, source_, type_, member_, form_, ...)                                                  \
    {                                                                                                            \
        .name = (name_), .form = (form_), .source = (source_), .member = offsetof(type_, member_), ##__VA_ARGS__ \
    }
#define INFO_U64_(form_, name_, source_, type_, member_, ...) \
    INFO_FIELD_(name_, source_, type_, member_, _Generic(((type_ *)0)->member_, uint64_t : form_), ##__VA_ARGS__)
#define INFO_TWO_(form_, name_, source_, type_, member_, other_, ...) \
    INFO_U64_(form_, name_, source_, type_, member_,                  \
              .other = _Generic(((type_ *)0)->other_, uint64_t        \
                                : offsetof(type_, other_)),           \
              ##__VA_ARGS__)
