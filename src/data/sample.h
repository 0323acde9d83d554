/* Random items of a table, for SRANDMEMBER and similar commands, and to estimate the memory of items. */
#pragma once

#include "base/random.h"
#include "base/table.h"

#include <stdbool.h>
#include <stdint.h>

/* Each item has the same chance; NULL: the table is empty. */
void *sample_random(const struct table *table, struct random *random);
/* Visits `count` different items (at most all). Each selection has about the same chance. The order is not random. */
void sample_some(const struct table *table, struct random *random, uint64_t count, table_item_fn fn, void *context);
/* The memory of all items: the mean of `samples` items (0: all), times their number. */
uint64_t sample_memory(const struct table *table, uint64_t samples, uint64_t (*bytes)(const void *item));

/* Selects `wanted` of `left` elements while they are visited one after the other. Each selection has the same
 * chance. */
struct sample_picker {
    uint64_t left;
    uint64_t wanted;
};
bool sample_pick(struct sample_picker *picker, struct random *random);
