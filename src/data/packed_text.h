/* Short texts and whole numbers in place of an address, so an item of a table (base/table.h) that takes no memory.
 *
 * Addresses of items are even and have 48 bits; an odd word of 48 bits is a packed text:
 *
 *     bit 0       1
 *     bit 1       1: a text of up to 5 bytes; 0: the decimal text of a number
 *     bits 2..4   of a text: its size         bits 2..47  of a number: it, signed
 *     bits 8..47  of a text: its bytes
 *
 * Each text has one packed form or none: texts of up to 5 bytes are packed as they are, digits or not. These are pure
 * functions. */
#pragma once

#include "base/compiler.h"
#include "base/number.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { PACKED_TEXT_BYTES = 5, PACKED_NUMBER_BITS = 46, PACKED_NUMBER_DIGITS = 15 /* with a sign */ };

static inline bool packed_text_is(const void *item)
{
    return ((uintptr_t)item & 1) != 0;
}

/* NULL: it does not fit. */
static inline void *packed_text_make(struct slice text)
{
    int64_t number;
    uint64_t word = 0;

    if (text.size <= PACKED_TEXT_BYTES) {
        for (size_t i = 0; i < text.size; i++)
            word |= (uint64_t)(unsigned char)text.data[i] << (8 + 8 * i);
        word |= (uint64_t)text.size << 2 | 3;
    } else {
        if (text.size > PACKED_NUMBER_DIGITS || text.data[0] > '9' || !number_parse_i64(text, &number) ||
            number < -(INT64_C(1) << (PACKED_NUMBER_BITS - 1)) || number >= INT64_C(1) << (PACKED_NUMBER_BITS - 1))
            return NULL;
        word = ((uint64_t)number & ((UINT64_C(1) << PACKED_NUMBER_BITS) - 1)) << 2 | 1;
    }
    return (void *)(uintptr_t)word; /* NOLINT(performance-no-int-to-ptr) */
}

static inline struct slice packed_text_get(const void *item, char scratch[NUMBER_I64_SPACE])
{
    const uint64_t word = (uint64_t)(uintptr_t)item;

    if ((word & 2) == 0)
        return slice_make(scratch, number_format_i64(scratch, (int64_t)(word << 16) >> 18));
    for (unsigned i = 0; i < PACKED_TEXT_BYTES; i++)
        scratch[i] = (char)(word >> (8 + 8 * i));
    return slice_make(scratch, word >> 2 & 7);
}
