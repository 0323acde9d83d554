#include "base/slice_find.h"

#include <string.h>

/* 16 bytes at any address; the compiler uses the processor's instructions. */
typedef uint8_t vector __attribute__((vector_size(16), aligned(1), may_alias));

enum { STRIDE = 4 * sizeof(vector), ENDS = 3 /* bytes of what is wanted that are looked for: its last ones */ };

/* For each of the 16 places from here on: whether the ends are there. */
static inline vector ends_at(const char *here, const vector ends[ENDS])
{
    vector equal = (vector)(*(const vector *)here == ends[0]);

    for (unsigned i = 1; i < ENDS; i++)
        equal &= (vector)(*(const vector *)(here + i) == ends[i]);
    return equal;
}

static inline bool is_any(vector equal)
{
    uint64_t halves[2];

    memcpy(halves, &equal, sizeof(halves));
    return (halves[0] | halves[1]) != 0;
}

static bool is_at_any(const char *from, size_t count, struct slice wanted)
{
    for (size_t i = 0; i < count; i++) {
        if (memcmp(from + i, wanted.data, wanted.size) == 0)
            return true;
    }
    return false;
}

static bool contains_short(struct slice bytes, struct slice wanted)
{
    return wanted.size == 0 ||
           (bytes.size >= wanted.size && is_at_any(bytes.data, bytes.size - wanted.size + 1, wanted));
}

bool slice_contains(struct slice bytes, struct slice wanted)
{
    vector ends[ENDS];
    size_t at = 0, skipped; /* before the ends */

    if (wanted.size < ENDS)
        return contains_short(bytes, wanted);
    skipped = wanted.size - ENDS;
    for (unsigned i = 0; i < ENDS; i++)
        ends[i] = (vector){0} + (uint8_t)wanted.data[skipped + i];
    /* `at` is where it would begin; the vectors read up to STRIDE + wanted.size - 1 bytes from there. */
    for (; at + wanted.size + STRIDE <= bytes.size; at += STRIDE) {
        const char *here = bytes.data + at + skipped;
        const vector equal = ends_at(here, ends) | ends_at(here + 16, ends) | ends_at(here + 32, ends) |
                             ends_at(here + 48, ends);

        if (is_any(equal) && is_at_any(bytes.data + at, STRIDE, wanted))
            return true;
    }
    return contains_short(slice_skip(bytes, at), wanted);
}
