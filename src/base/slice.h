/* A slice: a pointer to bytes and their count. It is a plain value: pass, copy and compare it. It owns nothing and is
 * valid as long as the bytes are. The bytes may have any value, also zero. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const char *data; /* may be NULL when size is 0 */
    size_t size;
};

#define SLICE(literal) ((struct slice){"" literal, sizeof(literal) - 1})
#define SLICE_EMPTY ((struct slice){NULL, 0})

static inline struct slice slice_make(const void *data, size_t size)
{
    return (struct slice){(const char *)data, size};
}

static inline struct slice slice_from_text(const char *text)
{
    return (struct slice){text, strlen(text)};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Returns a number below, equal to or above zero. Compares bytes as unsigned numbers; a prefix comes before the longer
 * one. */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);

    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static inline char slice_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* ASCII letters are equal in both cases. Every other byte is equal only to itself, in any locale. */
static inline bool slice_equal_nocase(struct slice a, struct slice b)
{
    if (a.size != b.size)
        return false;
    for (size_t i = 0; i < a.size; i++) {
        if (slice_lower(a.data[i]) != slice_lower(b.data[i]))
            return false;
    }
    return true;
}

static inline bool slice_equal_text(struct slice a, const char *text)
{
    return slice_equal(a, slice_from_text(text));
}

static inline bool slice_equal_text_nocase(struct slice a, const char *text)
{
    return slice_equal_nocase(a, slice_from_text(text));
}

static inline bool slice_starts_with(struct slice a, struct slice prefix)
{
    return a.size >= prefix.size && (prefix.size == 0 || memcmp(a.data, prefix.data, prefix.size) == 0);
}

static inline struct slice slice_skip(struct slice a, size_t count)
{
    return slice_make(a.data + count, a.size - count);
}
