/* Numbers in the bodies of frames, and a cursor that reads them from outside bytes. A number is a varint (seven bits a
 * byte, the lowest first, in as few bytes as it needs) or eight bytes, the lowest first. A cursor that fails stays
 * where it failed and keeps the first reason; each read then fails, so a caller may look once at the end of a row of
 * reads. */
#pragma once

#include "base/assert.h"
#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { VARINT_BYTES_MOST = 10 };

/* Without a look at the room. These return where it ends. */
static inline char *write_varint(char *at, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *at++ = (char)(number | 0x80);
    *at++ = (char)number;
    return at;
}

static inline char *write_fixed(char *at, uint64_t number)
{
    for (unsigned i = 0; i < 8; i++)
        *at++ = (char)(number >> 8 * i);
    return at;
}

/* A difference that may be negative: small ones of either sign are short. */
static inline char *write_difference(char *at, uint64_t number, uint64_t base)
{
    const uint64_t difference = number - base;

    return write_varint(at, (difference << 1) ^ (0 - (difference >> 63)));
}

static inline void put_byte(struct buffer *out, uint8_t byte)
{
    buffer_append_char(out, (char)byte);
}

static inline void put_varint(struct buffer *out, uint64_t number)
{
    char *at = buffer_reserve(out, VARINT_BYTES_MOST);

    out->size += (size_t)(write_varint(at, number) - at);
}

static inline void put_fixed(struct buffer *out, uint64_t number)
{
    (void)write_fixed(buffer_reserve(out, sizeof(number)), number);
    out->size += sizeof(number);
}

static inline void put_difference(struct buffer *out, uint64_t number, uint64_t base)
{
    char *at = buffer_reserve(out, VARINT_BYTES_MOST);

    out->size += (size_t)(write_difference(at, number, base) - at);
}

struct cursor {
    const uint8_t *begin, *at, *end;
    const char *error; /* NULL: all reads so far succeeded */
    bool is_short;     /* it failed as the bytes ended; more of them could help */
};

static inline struct cursor cursor_of(struct slice bytes)
{
    const uint8_t *begin = (const uint8_t *)bytes.data;

    return (struct cursor){.begin = begin, .at = begin, .end = begin + bytes.size};
}

static inline size_t cursor_left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

static inline bool cursor_fail(struct cursor *cursor, const char *error)
{
    if (cursor->error == NULL)
        cursor->error = error;
    return false;
}

static inline bool cursor_end(struct cursor *cursor)
{
    cursor->is_short = cursor->error == NULL || cursor->is_short;
    return cursor_fail(cursor, "it ends too early");
}

static inline bool get_byte(struct cursor *cursor, uint8_t *byte)
{
    *byte = 0;
    if (UNLIKELY(cursor->error != NULL || cursor->at == cursor->end))
        return cursor_end(cursor);
    *byte = *cursor->at++;
    return true;
}

static inline bool get_varint(struct cursor *cursor, uint64_t *number)
{
    const uint8_t *at = cursor->at;
    uint64_t sum = 0;
    unsigned shift = 0;

    *number = 0;
    if (UNLIKELY(cursor->error != NULL))
        return false;
    for (; at < cursor->end && *at >= 0x80 && shift < 63; at++, shift += 7)
        sum |= (uint64_t)(*at & 0x7f) << shift;
    if (UNLIKELY(at == cursor->end))
        return cursor_end(cursor);
    if (UNLIKELY((shift == 63 && *at > 1) || (shift != 0 && *at == 0)))
        return cursor_fail(cursor, "a number is too long");
    *number = sum | (uint64_t)*at << shift;
    cursor->at = at + 1;
    return true;
}

static inline bool get_fixed(struct cursor *cursor, uint64_t *number)
{
    *number = 0;
    if (UNLIKELY(cursor->error != NULL || cursor_left(cursor) < 8))
        return cursor_end(cursor);
    for (unsigned i = 0; i < 8; i++)
        *number |= (uint64_t)cursor->at[i] << 8 * i;
    cursor->at += 8;
    return true;
}

static inline bool get_difference(struct cursor *cursor, uint64_t base, uint64_t *number)
{
    uint64_t coded;

    *number = 0;
    if (!get_varint(cursor, &coded))
        return false;
    *number = base + ((coded >> 1) ^ (0 - (coded & 1)));
    return true;
}

static inline bool get_bytes(struct cursor *cursor, size_t size, struct slice *bytes)
{
    *bytes = SLICE_EMPTY;
    if (UNLIKELY(cursor->error != NULL || cursor_left(cursor) < size))
        return cursor_end(cursor);
    *bytes = slice_make(cursor->at, size);
    cursor->at += size;
    return true;
}

/* A count of things that take at least `least_bytes` each: more than can be there is an error, before anything is
 * allocated. */
static inline bool get_count(struct cursor *cursor, size_t least_bytes, uint64_t *count)
{
    if (!get_varint(cursor, count))
        return false;
    if (UNLIKELY(*count > cursor_left(cursor) / least_bytes)) {
        *count = 0;
        return cursor_fail(cursor, "a count is larger than what follows");
    }
    return true;
}
