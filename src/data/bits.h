/* Strings as arrays of bits: bit 0 is the highest bit of the first byte. Pure functions on the caller's bytes, for any
 * thread. Positions count bits; strings of 512 MiB and more are supported. Bits beyond the end of a string read as
 * zero. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool bits_get(struct slice bytes, uint64_t at)
{
    return at / 8 < bytes.size && ((unsigned char)bytes.data[at / 8] >> (7 - at % 8) & 1) != 0;
}

/* The byte must exist. */
static inline void bits_set(char *bytes, uint64_t at, bool value)
{
    unsigned mask = 0x80U >> at % 8;

    bytes[at / 8] = (char)(value ? (unsigned char)bytes[at / 8] | mask : (unsigned char)bytes[at / 8] & ~mask);
}

/* The range is within the string. */
uint64_t bits_count(struct slice bytes, uint64_t first, uint64_t count);
int64_t bits_find(struct slice bytes, bool value, uint64_t first, uint64_t count); /* -1: not found */

/* --- combining strings; the caller provides room for the result --- */

enum bits_operation {
    BITS_AND,
    BITS_OR,
    BITS_XOR,
    BITS_DIFF,  /* bits of the first source that no other one has */
    BITS_DIFF1, /* bits of other sources that the first one has not */
    BITS_ANDOR, /* bits of the first source that another one has, too */
    BITS_ONE    /* bits that exactly one source has */
};

/* Writes `size` bytes, the size of the longest source. `out` must not be a source. */
void bits_combine(enum bits_operation operation, char *out, size_t size, const struct slice *sources, size_t count);
void bits_invert(char *out, struct slice source);

/* Shifts a string, taken as a number whose lowest bit is the lowest bit of the first byte, by `places` (to the right if
 * negative). A shift to the left adds the bytes that any number would need; a shift to the right removes whole
 * bytes. */
size_t bits_shifted_size(size_t size, int64_t places);
void bits_shift(char *out, struct slice source, int64_t places); /* room for bits_shifted_size bytes */

/* --- integers of 1 to 64 bits at any bit position, highest bit first --- */

struct bits_field {
    uint64_t at;   /* position of its first bit */
    uint8_t width; /* 1 ... 64; unsigned up to 63 */
    bool is_signed;
};

enum bits_overflow { BITS_WRAP, BITS_SATURATE, BITS_FAIL };

static inline uint64_t bits_field_end_byte(const struct bits_field *field) /* index of its last byte */
{
    return (field->at + field->width - 1) / 8;
}

int64_t bits_field_read(struct slice bytes, const struct bits_field *field);
/* Writes the low bits of `value`. The bytes must exist. */
void bits_field_write(char *bytes, const struct bits_field *field, int64_t value);

/* The value of a field after SET or INCRBY, with the given handling of overflow. False: the value does not fit, and
 * `overflow` is BITS_FAIL. An unsigned field takes `value` as unsigned: -1 overflows. */
must_check bool bits_field_fit(const struct bits_field *field, enum bits_overflow overflow, int64_t value,
                               int64_t *result);
must_check bool bits_field_add(const struct bits_field *field, enum bits_overflow overflow, int64_t old,
                               int64_t increment, int64_t *result);
