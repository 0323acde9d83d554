/* The 24 bits of an entry's clock: its last use, or how often it is used. LRU policies store the second of the last
 * use. LFU policies store
 *
 *     minute, 16 bits | count, 8 bits
 *
 * The count stands for many more uses than 255: each use adds one with a probability that falls as the count rises (1 /
 * ((count - 5) * log_factor + 1)), and one is subtracted for every decay_minutes. New keys begin with 5, so that they
 * are not evicted first. This is the algorithm of Redis' LFU. Pure functions, for any thread. */
#pragma once

#include <stdint.h>

enum { LFU_FRESH_COUNT = 5, LFU_MOST_COUNT = 255 };

struct lru_lfu_rule {
    uint32_t log_factor;
    uint32_t decay_minutes; /* 0: no decay */
};

uint32_t lru_lfu_fresh(int64_t now_ms);                                           /* the clock of a new key */
uint32_t lru_lfu_count(uint32_t clock, int64_t now_ms, struct lru_lfu_rule rule); /* the count at now_ms, after decay */
/* Returns the clock after a use. `chance` is 64 random bits. */
uint32_t lru_lfu_add(uint32_t clock, int64_t now_ms, struct lru_lfu_rule rule, uint64_t chance);
