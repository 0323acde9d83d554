/* Sorts the elements that SORT has gathered, but only as far as needed: the first ten of a million elements cost hardly
 * more than visiting all of them once. Equal elements keep their order. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A gathered element; the elements are in one array, in the order in which they were gathered. */
struct sort_element {
    struct slice text; /* a zero byte follows */
    union {
        struct slice weight; /* a zero byte follows; data NULL: no weight */
        double number;       /* SORT_BY_NUMBER: never NaN */
    };
};

/* The struct that is moved while sorting. */
struct sort_item {
    const struct sort_element *element;
    uint64_t key; /* set by sort_order: the part to compare first */
};

enum sort_rule {
    SORT_BY_NUMBER,    /* then by text */
    SORT_BY_COLLATION, /* weights as texts in the order of the locale, up to a zero byte */
    SORT_BY_BYTES      /* weights as texts, byte by byte */
};

/* Sorts such that the places `from` to `to` (exclusive) have the right elements. The other elements have no order. */
void sort_order(struct sort_item *items, size_t count, size_t from, size_t to, enum sort_rule rule, bool descending);
