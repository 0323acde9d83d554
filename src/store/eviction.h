/* Which keys go when memory is short, and their going: one key a call, one stripe at a time.
 *
 * Candidates are found by drawing a few keys at random and keeping the best ones met so far in a pool, which belongs to
 * the calling thread: after some calls it holds keys that are among the best of many that were looked at. A candidate
 * that was used, changed or deleted meanwhile is dropped. Keys with a deadline are drawn from the heaps of deadlines;
 * by time to live the heaps tell the next one, and no key is drawn. */
#pragma once

#include "store/access.h"
#include "store/lru_lfu.h"

enum eviction_measure { EVICTION_LEAST_RECENT, EVICTION_LEAST_FREQUENT, EVICTION_RANDOM, EVICTION_SHORTEST_TTL };

struct eviction_rule {
    enum eviction_measure measure;
    bool expiring_only;      /* keys with a deadline; always so with EVICTION_SHORTEST_TTL */
    bool unlink;             /* journaled as UNLINK, not DEL */
    bool times_deletions;    /* pool->delete_us is wanted */
    unsigned samples;        /* keys drawn a call */
    struct lru_lfu_rule lfu; /* EVICTION_LEAST_FREQUENT */
};

enum { EVICTION_POOL_SIZE = 16 };

struct eviction_candidate {
    uint64_t score; /* the higher, the sooner it goes */
    uint64_t hash;  /* of the key, which also tells its stripe */
    unsigned db;
};

/* Zeroed memory is an empty pool. */
struct eviction_pool {
    struct eviction_candidate items[EVICTION_POOL_SIZE]; /* the best last */
    unsigned count;
    uint64_t delete_begin_us;
    uint64_t delete_us; /* what the last deletion took, with freeing the value; of a rule with times_deletions */
};

/* Deletes one key, as journal and watchers learn, and returns how many bytes that frees (some of them, of large
 * values, in the background); 0: there is none that may go. No stripe is held, or all; the access has its time. Each
 * deletion is appended to the journal before its stripe is released. */
size_t eviction_step(struct access *access, struct eviction_pool *pool, const struct eviction_rule *rule);
