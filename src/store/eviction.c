#include "store/eviction.h"

#include "base/clock.h"
#include "base/random.h"
#include "store/expiry.h"
#include "store/lookup.h"

enum {
    TRIES = 8,            /* rounds without a key before that means that there are none */
    STRIPES_A_ROUND = 16, /* stripes to draw from, at most: with few keys each has less than is to be drawn */
    TTL_STRIPES = 256,    /* stripes whose next deadlines are compared */
    RECORD_TRIES = 1000,  /* superfluous records in a row */
    DRAWS_A_SAMPLE = 4,   /* records of deadlines looked at for one key: some are superfluous */
    CLOCK_MASK = 0xFFFFFF
};

static uint64_t random_bits(void *context)
{
    return random_u64(context);
}

/* ----------------------------------------------------------------------------------------------------- scoring -- */

static uint64_t score_of(const struct access *access, const struct eviction_rule *rule, const struct entry *entry)
{
    switch (rule->measure) {
    case EVICTION_LEAST_RECENT:
        return ((uint64_t)(access->now_ms / 1000) - entry->clock) & CLOCK_MASK;
    case EVICTION_LEAST_FREQUENT:
        return LFU_MOST_COUNT - lru_lfu_count(entry->clock, access->now_ms, rule->lfu);
    case EVICTION_RANDOM:
    case EVICTION_SHORTEST_TTL:
        break;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------------- the pool -- */

static void pool_take(struct eviction_pool *pool, unsigned index)
{
    pool->count--;
    for (unsigned i = index; i < pool->count; i++)
        pool->items[i] = pool->items[i + 1];
}

/* Keeps it if there is room, or if it is better than the worst one. */
static void pool_offer(struct eviction_pool *pool, struct eviction_candidate candidate)
{
    unsigned at;

    for (unsigned i = 0; i < pool->count; i++) {
        if (pool->items[i].hash == candidate.hash && pool->items[i].db == candidate.db) {
            pool_take(pool, i); /* its score may be another one by now */
            break;
        }
    }
    if (pool->count == EVICTION_POOL_SIZE) {
        if (candidate.score <= pool->items[0].score)
            return;
        pool_take(pool, 0);
    }
    for (at = pool->count; at > 0 && pool->items[at - 1].score > candidate.score; at--)
        pool->items[at] = pool->items[at - 1];
    pool->items[at] = candidate;
    pool->count++;
}

/* --------------------------------------------------------------------------------------------------- deletion -- */

struct hash_match {
    uint64_t hash;
};

static bool hash_matches(const void *item, void *context)
{
    const struct hash_match *match = context;

    return lookup_entry_hash(item) == match->hash;
}

static struct entry *find_by_hash(const struct stripe_db *keys, uint64_t hash)
{
    struct hash_match match = {hash};
    const uint64_t *slot = table_find_by_hash(&keys->keys, hash, hash_matches, &match);

    return slot != NULL ? table_slot_item(slot) : NULL;
}

/* The stripe is held. */
static size_t evict(struct access *access, struct eviction_pool *pool, const struct eviction_rule *rule, unsigned db,
                    const struct entry *entry)
{
    size_t bytes = store_entry_bytes(access->store, entry, 1);

    pool->delete_begin_us = rule->times_deletions ? clock_monotonic_us() : 0;
    access_evict(access, db, entry, rule->unlink);
    return MAX(bytes, 1U);
}

/* One stripe for a moment; at the gate nothing needs to be taken. False: somebody works there. */
static bool hold(struct access *access, uint32_t index)
{
    uint32_t busy;

    return access->exclusive || access_lock(access, &index, 1, &busy);
}

static void let_go(struct access *access, uint32_t index)
{
    if (!access->exclusive)
        access_unlock(access, &index, 1);
}

/* ---------------------------------------------------------------------------------------------------- drawing -- */

static uint64_t drawable_count(const struct stripe_db *keys, const struct eviction_rule *rule)
{
    const struct expiry *deadlines;

    if (!rule->expiring_only)
        return table_count(&keys->keys);
    deadlines = atomic_load_explicit(&keys->deadlines, memory_order_acquire);
    return deadlines != NULL ? atomic_load_explicit(&deadlines->live, memory_order_relaxed) : 0;
}

/* Looked at without the lock: a hint. */
static bool has_drawable(const struct store *store, uint32_t index, const struct eviction_rule *rule)
{
    for (unsigned db = 0; db < store_database_bound(store); db++) {
        const struct stripe_db *keys = stripe_db(&store->stripes[index], db);

        if (keys != NULL && drawable_count(keys, rule) != 0)
            return true;
    }
    return false;
}

/* A random stripe with keys that can be evicted, or the next one after it. */
static bool choose_stripe(const struct store *store, const struct eviction_rule *rule, uint32_t *index)
{
    uint32_t first = (uint32_t)random_u64(random_thread()) & store->stripe_mask;

    for (uint32_t i = 0; i <= store->stripe_mask; i++) {
        *index = (first + i) & store->stripe_mask;
        if (has_drawable(store, *index, rule))
            return true;
    }
    return false;
}

/* A key drawn at random. The stripe is held. NULL: none was met. */
static struct entry *draw(const struct stripe_db *keys, const struct eviction_rule *rule)
{
    const struct expiry *deadlines = atomic_load_explicit(&keys->deadlines, memory_order_relaxed);

    if (!rule->expiring_only)
        return table_random(&keys->keys, random_bits, random_thread());
    for (unsigned i = 0; deadlines != NULL && deadlines->count != 0 && i < DRAWS_A_SAMPLE; i++) {
        uint64_t hash = deadlines->records[random_below(random_thread(), deadlines->count)].hash;
        struct entry *entry = find_by_hash(keys, hash);

        if (entry != NULL && entry_expire_ms(entry) != EXPIRE_NEVER)
            return entry;
    }
    return NULL;
}

/* Draws from each database of a stripe, up to `wanted` keys, which is lowered by how many there were. By random the
 * first key drawn goes at once: its bytes are returned. */
static size_t draw_from_stripe(struct access *access, struct eviction_pool *pool, const struct eviction_rule *rule,
                               uint32_t index, unsigned *wanted)
{
    const struct stripe *stripe = &access->store->stripes[index];
    const unsigned bound = store_database_bound(access->store);
    unsigned first = (unsigned)random_below(random_thread(), bound), most = 0;

    for (unsigned i = 0; i < bound; i++) {
        unsigned db = (first + i) % bound;
        const struct stripe_db *keys = stripe_db(stripe, db);

        unsigned count = keys != NULL ? (unsigned)MIN(drawable_count(keys, rule), *wanted) : 0;

        most = MAX(most, count);
        for (unsigned k = 0; k < count; k++) {
            const struct entry *entry = draw(keys, rule);

            if (entry == NULL)
                continue;
            if (rule->measure == EVICTION_RANDOM)
                return evict(access, pool, rule, db, entry);
            pool_offer(pool, (struct eviction_candidate){score_of(access, rule, entry), lookup_entry_hash(entry), db});
        }
    }
    *wanted -= most;
    return 0;
}

/* As many keys of each database as the rule says, from one stripe or, where it has fewer, from several. */
static size_t draw_round(struct access *access, struct eviction_pool *pool, const struct eviction_rule *rule, bool *any)
{
    unsigned wanted = rule->samples;
    size_t bytes = 0;
    uint32_t index;

    for (unsigned i = 0; i < STRIPES_A_ROUND && wanted != 0 && bytes == 0; i++) {
        *any = choose_stripe(access->store, rule, &index);
        if (!*any)
            break;
        if (!hold(access, index))
            continue;
        bytes = draw_from_stripe(access, pool, rule, index, &wanted);
        let_go(access, index);
    }
    return bytes;
}

/* ------------------------------------------------------------------------------------------------- the choice -- */

/* Deletes the best candidate that still is one; 0: the pool is empty. */
static size_t evict_best(struct access *access, struct eviction_pool *pool, const struct eviction_rule *rule)
{
    while (pool->count != 0) {
        struct eviction_candidate best = pool->items[--pool->count];
        uint32_t index = (uint32_t)best.hash & access->store->stripe_mask;
        const struct stripe_db *keys;
        const struct entry *entry;
        size_t bytes = 0;

        if (!hold(access, index))
            continue;
        keys = stripe_db(&access->store->stripes[index], best.db);
        entry = keys != NULL ? find_by_hash(keys, best.hash) : NULL;
        if (entry != NULL && (!rule->expiring_only || entry_expire_ms(entry) != EXPIRE_NEVER) &&
            score_of(access, rule, entry) >= best.score)
            bytes = evict(access, pool, rule, best.db, entry);
        let_go(access, index);
        if (bytes != 0)
            return bytes;
    }
    return 0;
}

/* The stripe and database whose next deadline is the first of some stripes'. */
static bool choose_deadline(const struct store *store, uint32_t *index, unsigned *db)
{
    uint32_t first = (uint32_t)random_u64(random_thread()) & store->stripe_mask;
    int64_t best = INT64_MAX;

    for (uint32_t i = 0; i <= store->stripe_mask && (i < TTL_STRIPES || best == INT64_MAX); i++) {
        uint32_t at = (first + i) & store->stripe_mask;

        for (unsigned k = 0; k < store_database_bound(store); k++) {
            const struct stripe_db *keys = stripe_db(&store->stripes[at], k);
            const struct expiry *deadlines = keys != NULL ? atomic_load_explicit(&keys->deadlines, memory_order_acquire)
                                                          : NULL;
            int64_t next = deadlines != NULL ? atomic_load_explicit(&deadlines->next_ms, memory_order_relaxed)
                                             : INT64_MAX;

            if (next < best) {
                best = next;
                *index = at;
                *db = k;
            }
        }
    }
    return best != INT64_MAX;
}

/* Deletes the key that is due next in a stripe; 0: its record was superfluous, and another stripe may be first now. */
static size_t evict_next_due(struct access *access, struct eviction_pool *pool, const struct eviction_rule *rule,
                             uint32_t index, unsigned db)
{
    const struct stripe_db *keys = stripe_db(&access->store->stripes[index], db);
    struct expiry *deadlines = atomic_load_explicit(&keys->deadlines, memory_order_relaxed);
    struct expiry_record record;
    const struct entry *entry;

    if (!expiry_take_due(deadlines, INT64_MAX, &record))
        return 0;
    entry = find_by_hash(keys, record.hash);
    if (entry == NULL || entry_expire_ms(entry) == EXPIRE_NEVER)
        return 0;
    if (entry_expire_ms(entry) <= record.when_ms)
        return evict(access, pool, rule, db, entry);
    expiry_put_back(deadlines, record.hash, entry_expire_ms(entry));
    return 0;
}

static size_t step_by_deadline(struct access *access, struct eviction_pool *pool, const struct eviction_rule *rule)
{
    uint32_t index = 0;
    unsigned db = 0;
    size_t bytes = 0;

    for (unsigned try = 0; try < RECORD_TRIES && bytes == 0 && choose_deadline(access->store, &index, &db); try++) {
        if (!hold(access, index))
            continue;
        bytes = evict_next_due(access, pool, rule, index, db);
        let_go(access, index);
    }
    return bytes;
}

static size_t step_by_score(struct access *access, struct eviction_pool *pool, const struct eviction_rule *rule)
{
    size_t bytes = 0;
    bool any = true;

    for (unsigned try = 0; try < TRIES && bytes == 0 && any; try++) {
        bytes = draw_round(access, pool, rule, &any);
        if (bytes == 0)
            bytes = evict_best(access, pool, rule);
    }
    return bytes;
}

size_t eviction_step(struct access *access, struct eviction_pool *pool, const struct eviction_rule *rule)
{
    size_t bytes;

    access_assert_none_held(access);
    access->found_key = NULL;
    bytes = rule->measure == EVICTION_SHORTEST_TTL ? step_by_deadline(access, pool, rule)
                                                   : step_by_score(access, pool, rule);
    pool->delete_us = bytes != 0 && rule->times_deletions ? clock_monotonic_us() - pool->delete_begin_us : 0;
    return bytes;
}
