/* What the 24 bits of an entry's clock say of its use. Policies by last use keep the second of the last use there. The
 * policies by frequency keep
 *
 *     minute, 16 bits | count, 8 bits
 *
 * a count that stands for many more uses than 255: each use adds one with a probability that falls as the count rises
 * (1 / ((count - 5) * log_factor + 1)), and one is taken off for every decay_minutes that pass. New keys begin with 5,
 * so that they are not the first to go. Pure functions; any thread. */
#pragma once

#include <stdint.h>

enum { LFU_FRESH_COUNT = 5, LFU_MOST_COUNT = 255 };

struct lru_lfu_rule {
    uint32_t log_factor;
    uint32_t decay_minutes; /* 0: no decay */
};

uint32_t lru_lfu_fresh(int64_t now_ms);                                           /* the clock of a new key */
uint32_t lru_lfu_count(uint32_t clock, int64_t now_ms, struct lru_lfu_rule rule); /* as it is by now */
/* The clock after a use; `chance` is random, all its bits. */
uint32_t lru_lfu_add(uint32_t clock, int64_t now_ms, struct lru_lfu_rule rule, uint64_t chance);
