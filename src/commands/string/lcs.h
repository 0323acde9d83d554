/* The longest common subsequence of two strings: the longest string that can be had from either by leaving bytes out.
 * Pure computation. Time is the product of the sizes; memory a quarter of a byte times that product. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* A run: `size` neighbouring bytes of both strings that belong to the subsequence together. */
struct lcs_run {
    size_t first_start, second_start, size;
};

struct lcs;

/* NULL: no memory. The strings must outlive it. */
must_check struct lcs *lcs_create(struct slice first, struct slice second);
void lcs_destroy(struct lcs **lcs);                      /* NULL is fine; leaves NULL */
size_t lcs_size(const struct lcs *lcs);                  /* of the whole subsequence */
bool lcs_next_run(struct lcs *lcs, struct lcs_run *run); /* from the end to the beginning; false: that was all */
