/* Eviction: chooses and deletes keys when memory is short, one key a call, one stripe at a time.
 *
 * Each call draws a few random keys and keeps the best candidates so far in a pool that belongs to the calling thread.
 * So after some calls the pool holds keys that are among the best of many. A candidate that was used, changed or
 * deleted meanwhile is dropped. Keys with a deadline are drawn from the heaps of deadlines. With EVICTION_SHORTEST_TTL
 * the heaps give the next key, and none is drawn. */
#pragma once

#include "store/access.h"
#include "store/lru_lfu.h"

enum eviction_measure { EVICTION_LEAST_RECENT, EVICTION_LEAST_FREQUENT, EVICTION_RANDOM, EVICTION_SHORTEST_TTL };

struct eviction_rule {
    enum eviction_measure measure;
    bool expiring_only;      /* only keys with a deadline; always so with EVICTION_SHORTEST_TTL */
    bool unlink;             /* journaled as UNLINK, otherwise as DEL */
    bool times_deletions;    /* measures pool->delete_us */
    unsigned samples;        /* number of keys drawn for each call */
    struct lru_lfu_rule lfu; /* for EVICTION_LEAST_FREQUENT */
};

enum { EVICTION_POOL_SIZE = 16 };

struct eviction_candidate {
    uint64_t score; /* the key with the highest score is evicted first */
    uint64_t hash;  /* hash of the key, which also gives its stripe */
    unsigned db;
};

/* Zeroed memory is an empty pool. */
struct eviction_pool {
    struct eviction_candidate items[EVICTION_POOL_SIZE]; /* the best is last */
    unsigned count;
    uint64_t delete_begin_us;
    uint64_t delete_us; /* duration of the last deletion with freeing the value, if the rule has times_deletions */
};

/* Deletes one key and informs journal and watchers. Returns how many bytes this frees (for large values some of them
 * later, in the background); 0: no key can be evicted. No stripe is held, or all; the access has its time. Each
 * deletion is appended to the journal before its stripe is released. */
size_t eviction_step(struct access *access, struct eviction_pool *pool, const struct eviction_rule *rule);
