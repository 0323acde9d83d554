#include "base/slice_find.h"

#include "base/compiler.h"

#include <string.h>

/* 16 bytes at any address; the compiler uses the processor's instructions. */
typedef uint8_t vector __attribute__((vector_size(16), aligned(1), may_alias));

enum { STRIDE = 4 * sizeof(vector), ENDS = 2 /* bytes of what is wanted that are looked for: its last ones */ };

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

/* Few of the places have its last byte. */
static bool is_at_any(const char *from, size_t count, struct slice wanted)
{
    const char last = wanted.data[wanted.size - 1];

    for (size_t i = 0; i < count; i++) {
        if (UNLIKELY(from[i + wanted.size - 1] == last) && memcmp(from + i, wanted.data, wanted.size) == 0)
            return true;
    }
    return false;
}

/* Behind which of the 16 places from here on the ends are: it may be there. */
static bool is_at_ends(const char *from, vector equal, struct slice wanted)
{
    for (unsigned i = 0; i < sizeof(equal); i++) {
        if (equal[i] != 0 && memcmp(from + i, wanted.data, wanted.size) == 0)
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
        const vector equal[] = {ends_at(here, ends), ends_at(here + 16, ends), ends_at(here + 32, ends),
                                ends_at(here + 48, ends)};

        if (LIKELY(!is_any(equal[0] | equal[1] | equal[2] | equal[3])))
            continue;
        for (unsigned i = 0; i < countof(equal); i++) {
            if (is_any(equal[i]) && is_at_ends(bytes.data + at + 16 * (size_t)i, equal[i], wanted))
                return true;
        }
    }
    return contains_short(slice_skip(bytes, at), wanted);
}
