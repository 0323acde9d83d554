/* Rows: options of the configuration, declared as data next to the module they belong to.
 *
 *     static _Atomic int64_t hz;
 *     static const struct option_enum policies[] = {{"noeviction", 0}, {"allkeys-lru", 1}, {NULL, 0}};
 *     const struct option_row worker_options[] = {
 *         ROW_UINT("hz", &hz, 10, 1, 500, OPTION_MUTABLE, "Background cycles a second."),
 *         ROW_ENUM("maxmemory-policy", &policy, 0, policies, OPTION_MUTABLE, "Which keys are evicted."),
 *     };
 * Numbers are stored in _Atomic int64_t, and any thread may read them (relaxed): OPTION_GET(hz). Types UINT and MEMORY
 * hold an unsigned number in it: OPTION_GET_U64. Strings are replaced only in an exclusive section and under a lock.
 * Read a string inside the gate or with option_string_append, or copy it in `apply`. One thread at a time stores
 * values. Any thread may call option_format. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
    OPTION_BOOL = 0,          /* yes, no */
    OPTION_INT,               /* signed 64 bits */
    OPTION_UINT,              /* unsigned 64 bits */
    OPTION_MEMORY,            /* unsigned, with units */
    OPTION_PERCENT_OR_MEMORY, /* memory, or N%, which is stored as -N */
    OPTION_OCTAL,             /* INT, written in octal */
    OPTION_ENUM,
    OPTION_STRING,
    OPTION_SPECIAL /* the module has its own set and get */
};

enum option_flag {
    OPTION_MUTABLE = 1 << 0,      /* CONFIG SET may change it */
    OPTION_HIDDEN = 1 << 1,       /* CONFIG GET finds it by its full name, not by a pattern */
    OPTION_SENSITIVE = 1 << 2,    /* its value never appears in the log */
    OPTION_MULTI_ARG = 1 << 3,    /* takes a list of words; one word is split at blanks */
    OPTION_DENY_LOADING = 1 << 4, /* cannot be set while data is loading */
    OPTION_VOLATILE = 1 << 5,     /* the value refers to something else: `apply` runs even if the value is unchanged */
    OPTION_PROTECTED = 1 << 6,    /* needs enable-protected-configs */
    OPTION_DEBUG = 1 << 7,
    OPTION_EMPTY_IS_NULL = 1 << 8, /* STRING: "" is stored as data NULL */
    OPTION_MULTI_ENUM = 1 << 9,    /* ENUM: takes several names; their values are bits */
    OPTION_NO_REWRITE = 1 << 10,   /* CONFIG REWRITE does not write it */
    OPTION_ARRAY = 1 << 11         /* CONFIG SET takes any number of words */
};
#define OPTION_IMMUTABLE 0

struct option_enum {
    const char *name; /* NULL ends the table; if several names have one value, the first is printed */
    int64_t value;
};

struct option_string {
    char *data; /* NULL: unset; otherwise a zero byte follows it */
    size_t size;
};
void option_string_append(const struct option_string *string, struct buffer *buffer); /* any thread */
/* Replaces the string and returns the old one, which the caller frees. With the gate owned, or before other threads
 * start. */
must_check struct option_string option_string_replace(struct option_string *string, struct option_string with);

struct option_row {
    const char *name;
    const char *alias; /* NULL: none */
    enum option_type type;
    uint32_t flags;
    _Atomic int64_t *number;      /* storage of all types except STRING and SPECIAL */
    struct option_string *string; /* storage of STRING */
    int64_t preset;               /* default value; for unsigned types the bits of a uint64_t */
    int64_t least;                /* bounds, inclusive; for PERCENT, -100 allows percents */
    int64_t most;
    const char *preset_text;         /* STRING: default, may be NULL; SPECIAL: words for `set`, NULL: no default */
    const struct option_enum *names; /* ENUM */
    /* Called before any value is stored. Returns NULL, or why the value is refused. */
    const char *(*check)(const struct option_row *row, int64_t number, struct slice text);
    /* Called after all new values of one CONFIG SET are stored. Returns NULL, or why the values are refused; then all
     * old values are restored. */
    const char *(*apply)(const struct option_row *row);
    /* SPECIAL. False: nothing has changed, and *error has the reason ("": none given). */
    bool (*set)(const struct option_row *row, const struct slice *words, size_t count, char *error, size_t error_size);
    void (*get)(const struct option_row *row, struct buffer *buffer); /* any thread, also while `set` runs */
    /* SPECIAL: writes the lines for CONFIG REWRITE, each with its newline. NULL: one line with the name and the text of
     * `get`. */
    void (*rewrite)(const struct option_row *row, struct buffer *buffer);
    const char *help;
};

#define ROW_BOOL(name_, storage_, preset_, flags_, help_, ...)                                                  \
    {                                                                                                           \
        .name = (name_), .type = OPTION_BOOL, .number = (storage_), .preset = (preset_), .least = 0, .most = 1, \
        .flags = (flags_), .help = (help_), ##__VA_ARGS__                                                       \
    }
#define ROW_NUMBER_(type_, name_, storage_, preset_, least_, most_, flags_, help_, ...)                         \
    {                                                                                                           \
        .name = (name_), .type = (type_), .number = (storage_), .preset = (int64_t)(preset_),                   \
        .least = (int64_t)(least_), .most = (int64_t)(most_), .flags = (flags_), .help = (help_), ##__VA_ARGS__ \
    }
#define ROW_INT(...) ROW_NUMBER_(OPTION_INT, __VA_ARGS__)
#define ROW_UINT(...) ROW_NUMBER_(OPTION_UINT, __VA_ARGS__)
#define ROW_MEMORY(...) ROW_NUMBER_(OPTION_MEMORY, __VA_ARGS__)
#define ROW_PERCENT_OR_MEMORY(...) ROW_NUMBER_(OPTION_PERCENT_OR_MEMORY, __VA_ARGS__)
#define ROW_OCTAL(...) ROW_NUMBER_(OPTION_OCTAL, __VA_ARGS__)
#define ROW_ENUM(name_, storage_, preset_, names_, flags_, help_, ...)                                      \
    {                                                                                                       \
        .name = (name_), .type = OPTION_ENUM, .number = (storage_), .preset = (preset_), .names = (names_), \
        .flags = (flags_), .help = (help_), ##__VA_ARGS__                                                   \
    }
#define ROW_STRING(name_, storage_, preset_, flags_, help_, ...)                                                   \
    {                                                                                                              \
        .name = (name_), .type = OPTION_STRING, .string = (storage_), .preset_text = (preset_), .flags = (flags_), \
        .help = (help_), ##__VA_ARGS__                                                                             \
    }
#define ROW_SPECIAL(name_, set_, get_, preset_, flags_, help_, ...)                                      \
    {                                                                                                    \
        .name = (name_), .type = OPTION_SPECIAL, .set = (set_), .get = (get_), .preset_text = (preset_), \
        .flags = (flags_), .help = (help_), ##__VA_ARGS__                                                \
    }

#define OPTION_GET(storage) atomic_load_explicit(&(storage), memory_order_relaxed)
#define OPTION_GET_U64(storage) ((uint64_t)atomic_load_explicit(&(storage), memory_order_relaxed))
#define OPTION_IS(storage) (atomic_load_explicit(&(storage), memory_order_relaxed) != 0)

/* A parsed value that is not stored, or not stored any more. The caller of option_parse owns it. */
struct option_value {
    int64_t number;
    struct option_string string; /* STRING: the text. SPECIAL: the words, quoted */
};

#define OPTION_ERROR_SPACE 512

/* False: `error` has the text for the client. True: the caller releases `value` in the end. */
must_check bool option_parse(const struct option_row *row, const struct slice *words, size_t count,
                             struct option_value *value, char *error, size_t error_size);

enum option_result { OPTION_FAILED = 0, OPTION_CHANGED, OPTION_SAME };
/* Stores the value. Afterwards `value` holds the old one, so storing it again undoes the change. Only SPECIAL can
 * fail. */
must_check enum option_result option_store(const struct option_row *row, struct option_value *value, char *error,
                                           size_t error_size);
void option_value_release(struct option_value *value);

void option_set_preset(const struct option_row *row); /* stores the default */
/* True: the option has its default value; SPECIAL compares texts. */
bool option_is_preset(const struct option_row *row);
void option_fini(const struct option_row *row); /* frees the storage of a STRING */

void option_format(const struct option_row *row, struct buffer *buffer); /* appends the value as CONFIG GET shows it */
/* Appends the line for CONFIG REWRITE (for SPECIAL several lines) with its newline: strings quoted, memory with
 * units. */
void option_rewrite(const struct option_row *row, struct buffer *buffer);

bool option_is_named(const struct option_row *row, struct slice name); /* compares name and alias, case-insensitively */

/* Converts an ENUM value to its name (NULL: it has none), and back. */
const char *option_enum_name(const struct option_enum *names, int64_t value);
must_check bool option_enum_value(const struct option_enum *names, struct slice name, int64_t *value);
