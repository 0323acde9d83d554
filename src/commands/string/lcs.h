/* The longest common subsequence of two strings: the longest string that remains of both after removing bytes. Pure
 * computation. The time is proportional to the product of the sizes; the memory is a quarter of a byte times that
 * product. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* A run: `size` adjacent bytes of both strings that belong to the subsequence together. */
struct lcs_run {
    size_t first_start, second_start, size;
};

struct lcs;

/* NULL: no memory. The strings must outlive it. */
must_check struct lcs *lcs_create(struct slice first, struct slice second);
void lcs_destroy(struct lcs **lcs);                      /* accepts NULL; leaves NULL */
size_t lcs_size(const struct lcs *lcs);                  /* size of the subsequence */
bool lcs_next_run(struct lcs *lcs, struct lcs_run *run); /* from the end to the beginning; false: no more runs */
