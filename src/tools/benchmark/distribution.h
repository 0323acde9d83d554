/* distribution.h: which of the keys a request is about.
 *
 *     uniform          each equally often
 *     sequential       one after another, then from the first again
 *     gaussian[:D]     around the middle one, with a standard deviation of D keys (a sixth of all)
 *     zipf[:S]         the n-th one as often as 1 / n^S (0.99): few are asked for most of the time
 *     latest[:S]       likewise, but from the newest one backwards, while new ones come
 *
 * Zipf's numbers are drawn by inverting the integral of the curve and rejecting what lies above it (W. Hörmann, G.
 * Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", 1996): no table, and as
 * fast for a thousand million keys as for ten. */
#pragma once

#include "base/compiler.h"
#include "base/random.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum distribution_kind {
    DISTRIBUTION_UNIFORM,
    DISTRIBUTION_SEQUENTIAL,
    DISTRIBUTION_GAUSSIAN,
    DISTRIBUTION_ZIPF,
    DISTRIBUTION_LATEST,
};

struct distribution {
    enum distribution_kind kind;
    double parameter; /* 0: the usual one */
    uint64_t count;   /* keys: 0 ... count - 1 */
    /* what is computed once: */
    double exponent, integral_first, integral_last, shortcut;
    _Atomic uint64_t next; /* atomic, relaxed: of a sequence, which threads share; of latest: how many keys there are */
};

/* NULL, or why the text is none. The number of keys is set by distribution_begin. */
must_check const char *distribution_parse(const char *text, struct distribution *distribution);
void distribution_begin(struct distribution *distribution, uint64_t count);           /* count > 0 */
uint64_t distribution_draw(struct distribution *distribution, struct random *random); /* any thread */
uint64_t distribution_grow(struct distribution *distribution); /* latest: the number of a new key; any thread */
