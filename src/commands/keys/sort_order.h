/* Puts what SORT has gathered in order, but only as far as anybody will look: of a million elements the first ten cost
 * hardly more than looking at all of them once. What compares equal stays in the order in which it came. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One that was gathered; they stand one behind the other in the order in which they came. */
struct sort_element {
    struct slice text; /* a zero byte follows */
    union {
        struct slice weight; /* likewise; data NULL: it has none */
        double number;       /* SORT_BY_NUMBER: never NaN */
    };
};

/* What is moved about. */
struct sort_item {
    const struct sort_element *element;
    uint64_t key; /* of sort_order's own: the first thing to compare */
};

enum sort_rule {
    SORT_BY_NUMBER,    /* then by text */
    SORT_BY_COLLATION, /* weights as texts in the order of the locale, up to a zero byte */
    SORT_BY_BYTES      /* weights as texts, byte by byte */
};

/* Afterwards the places `from` to `to` (not included) hold what belongs there; the rest is in no order. */
void sort_order(struct sort_item *items, size_t count, size_t from, size_t to, enum sort_rule rule, bool descending);
