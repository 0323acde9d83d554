/* Strings as rows of bits: bit 0 is the highest bit of the first byte. Pure functions over the caller's bytes; any
 * thread. Positions are bits; 512 MiB and more of them fit. What lies beyond the end of a string reads as zeros. */
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

/* The byte is there. */
static inline void bits_set(char *bytes, uint64_t at, bool value)
{
    unsigned mask = 0x80U >> at % 8;

    bytes[at / 8] = (char)(value ? (unsigned char)bytes[at / 8] | mask : (unsigned char)bytes[at / 8] & ~mask);
}

/* Ranges lie within the string. */
uint64_t bits_count(struct slice bytes, uint64_t first, uint64_t count);
int64_t bits_find(struct slice bytes, bool value, uint64_t first, uint64_t count); /* -1: there is none */

/* --- strings combined; the result has the caller's room --- */

enum bits_operation { BITS_AND, BITS_OR, BITS_XOR };

/* `size` bytes, that is, of the longest source. `out` may be no source. */
void bits_combine(enum bits_operation operation, char *out, size_t size, const struct slice *sources, size_t count);
void bits_invert(char *out, struct slice source);

/* A string as a number whose lowest bit is the lowest bit of the first byte, times 2^places (divided, if negative).
 * To the left it grows by as many bytes as are needed for any number; to the right whole bytes go away. */
size_t bits_shifted_size(size_t size, int64_t places);
void bits_shift(char *out, struct slice source, int64_t places); /* room for bits_shifted_size */

/* --- numbers of some bits anywhere, the highest bit first --- */

struct bits_field {
    uint64_t at;   /* its first bit */
    uint8_t width; /* 1 ... 64, without sign up to 63 */
    bool is_signed;
};

enum bits_overflow { BITS_WRAP, BITS_SATURATE, BITS_FAIL };

static inline uint64_t bits_field_end_byte(const struct bits_field *field) /* the last byte it needs */
{
    return (field->at + field->width - 1) / 8;
}

int64_t bits_field_read(struct slice bytes, const struct bits_field *field);
/* Its low bits; the bytes are there. */
void bits_field_write(char *bytes, const struct bits_field *field, int64_t value);

/* What a field holds when it is set to a value, or its old one grows by an increment. False: it does not fit, and that
 * is BITS_FAIL. A field without sign takes `value` as unsigned: -1 is too much for it. */
must_check bool bits_field_fit(const struct bits_field *field, enum bits_overflow overflow, int64_t value,
                               int64_t *result);
must_check bool bits_field_add(const struct bits_field *field, enum bits_overflow overflow, int64_t old,
                               int64_t increment, int64_t *result);
