/* Some of the items of a table, by chance: for SRANDMEMBER and its like, and to estimate what items take. */
#pragma once

#include "base/random.h"
#include "base/table.h"

#include <stdbool.h>
#include <stdint.h>

void *sample_random(const struct table *table, struct random *random); /* each with the same chance; NULL: empty */
/* `count` different items (at most all), each selection with about the same chance, in no order. */
void sample_some(const struct table *table, struct random *random, uint64_t count, table_item_fn fn, void *context);
/* What all items take: the mean of `samples` of them (0: all) times their number. */
uint64_t sample_memory(const struct table *table, uint64_t samples, uint64_t (*bytes)(const void *item));

/* Picks `wanted` of `left` things that pass by, each selection with the same chance. */
struct sample_picker {
    uint64_t left;
    uint64_t wanted;
};
bool sample_pick(struct sample_picker *picker, struct random *random);
