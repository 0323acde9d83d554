#include "store/store.h"

#include "base/mem.h"
#include "store/access.h"
#include "store/expiry.h"
#include "store/key_registry.h"
#include "store/lookup.h"
#include "store/snapshot_live.h"
#include "store/subkey_ttl_priv.h"
#include "store/window.h"

struct store *store_create(uint32_t stripe_count, unsigned database_count)
{
    struct store *store = mem_alloc_zero(sizeof(*store));

    assert(stripe_count != 0 && stripe_count <= STORE_STRIPES_MOST && (stripe_count & (stripe_count - 1)) == 0);
    store->stripes = mem_aligned_alloc(CACHE_LINE_BYTES, stripe_count * sizeof(struct stripe));
    memset(store->stripes, 0, stripe_count * sizeof(struct stripe));
    store->stripe_mask = stripe_count - 1;
    store->database_count = database_count;
    store->databases = mem_alloc_zero(database_count * sizeof(*store->databases));
    atomic_init(&store->database_bound, 1);
    atomic_init(&store->active_expire, true);
    atomic_init(&store->keeps_expired, 0);
    atomic_init(&store->frees_later, FREE_UNLINK);
    horizon_init(&store->horizon, database_count);
    origins_init(&store->origins);
    for (uint32_t i = 0; i < stripe_count; i++) {
        spinlock_init(&store->stripes[i].lock, LOCK_STRIPE);
        store->stripes[i].index = i;
        store->stripes[i].databases = store->databases;
    }
    return store;
}

struct store *store_create_like(const struct store *other)
{
    struct store *store = store_create(other->stripe_mask + 1, other->database_count);

    memcpy(store->types, other->types, sizeof(store->types));
    atomic_init(&store->counts_changes, atomic_load_explicit(&other->counts_changes, memory_order_relaxed));
    atomic_init(&store->counts_uses, atomic_load_explicit(&other->counts_uses, memory_order_relaxed));
    atomic_init(&store->lfu_log_factor, atomic_load_explicit(&other->lfu_log_factor, memory_order_relaxed));
    atomic_init(&store->lfu_decay_minutes, atomic_load_explicit(&other->lfu_decay_minutes, memory_order_relaxed));
    return store;
}

void store_destroy(struct store **store)
{
    struct access access;
    struct store_counters counters;

    gate_assert_alone();
    if (*store == NULL)
        return;
    live_destroy(*store); /* what is freed below is left for nobody */
    memset(&counters, 0, sizeof(counters));
    access_init(&access, *store, &counters);
    access_begin(&access, 0, true);
    for (unsigned db = 0; db < (*store)->database_count; db++) {
        access_flush_db(&access, db, false);
        window_forget_db(&access, db);
    }
    window_forget_db(&access, horizon_libraries_db(&(*store)->horizon));
    window_destroy(&access);
    for (uint32_t i = 0; i <= (*store)->stripe_mask; i++) {
        struct stripe *stripe = &(*store)->stripes[i];

        for (unsigned db = 0; db < store_database_bound(*store); db++) {
            struct stripe_db *keys = stripe_db(stripe, db);
            struct expiry *deadlines = keys != NULL ? atomic_load(&keys->deadlines) : NULL;

            expiry_destroy(&deadlines);
        }
        stripe_registries_destroy(stripe);
    }
    for (unsigned db = 1; db < (*store)->database_count; db++)
        mem_free(atomic_load(&(*store)->databases[db]));
    horizon_fini(&(*store)->horizon);
    mem_free((*store)->databases);
    mem_free((*store)->stripes);
    mem_free(*store);
    *store = NULL;
}

void store_set_type(struct store *store, enum value_type type, const struct store_type *of)
{
    gate_assert_no_traffic();
    assert(type < TYPE_COUNT);
    assert((type == TYPE_STRING) == (of->ops == NULL));
    store->types[type] = *of;
}

uint64_t store_entry_bytes(const struct store *store, const struct entry *entry, uint64_t samples)
{
    const struct blob *blob = entry_blob(entry);

    if (entry->type != TYPE_STRING)
        return mem_usable(entry) + store->types[entry->type].ops->memory_bytes(entry_value(entry), samples) +
               subkey_ttl_memory_bytes(store, entry, samples);
    return mem_usable(entry) + (blob != NULL ? blob_footprint(blob) : 0);
}

void store_prefetch(const struct store *store, const struct key *keys, uint32_t count)
{
    const struct table *tables[STORE_PREFETCH_MOST];

    assert(spinlock_held_count != 0 || gate_is_alone());
    count = MIN(count, (uint32_t)STORE_PREFETCH_MOST);
    for (uint32_t i = 0; i < count; i++) {
        tables[i] = &store->stripes[(uint32_t)keys[i].hash & store->stripe_mask].first.keys;
        table_prefetch_directory(tables[i], keys[i].hash);
    }
    for (uint32_t i = 0; i < count; i++)
        table_prefetch_bucket(tables[i], keys[i].hash);
    for (uint32_t i = 0; i < count; i++)
        table_prefetch_item(tables[i], keys[i].hash);
}

/* Smaller ones are in a processor's own caches while they are used. */
enum { PREFETCH_MEMBERS_FROM = 32 * 1024 };

void store_prefetch_members(const struct store *store, const struct key *key, const struct slice *members,
                            uint32_t count)
{
    const struct table *keys = &store->stripes[(uint32_t)key->hash & store->stripe_mask].first.keys;
    const struct table *table = NULL;
    uint64_t hashes[STORE_PREFETCH_MOST];
    const struct value_ops *ops = NULL;
    const struct entry *entry;

    assert(spinlock_held_count != 0 || gate_is_alone());
    entry = lookup_in_table(keys, key);
    if (entry != NULL)
        ops = store->types[entry->type].ops;
    if (ops != NULL && ops->table != NULL)
        table = ops->table(entry_value(entry));
    if (table == NULL || table_count(table) < PREFETCH_MEMBERS_FROM)
        return;
    count = MIN(count, (uint32_t)STORE_PREFETCH_MOST);
    for (uint32_t i = 0; i < count; i++) {
        hashes[i] = hash_bytes(members[i].data, members[i].size);
        table_prefetch_directory(table, hashes[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        table_prefetch_bucket(table, hashes[i]);
    for (uint32_t i = 0; i < count; i++)
        table_prefetch_item(table, hashes[i]);
}

void store_observe(struct store *store, struct store_observer *observer)
{
    gate_assert_no_traffic();
    observer->next = store->observers;
    store->observers = observer;
}

void store_set_observed(struct store *store, uint32_t mask, uint32_t classes)
{
    uint32_t before = store_observed(store);

    while (!atomic_compare_exchange_weak_explicit(&store->observed, &before, (before & ~mask) | classes,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

void store_set_stamping(struct store *store, bool stamps)
{
    gate_assert_alone();
    if (stamps)
        window_create(store);
    store_set_observed(store, OBSERVE_STAMPS, stamps ? OBSERVE_STAMPS : 0);
}

void stripe_release(struct store *store, struct stripe *stripe)
{
    uint64_t waiters;

    spinlock_release(&stripe->lock);
    fence_light();
    waiters = stripe_take_waiters(stripe);
    if (UNLIKELY(waiters != 0) && store->wake != NULL)
        store->wake(waiters);
}

bool stripe_ask(struct stripe *stripe, unsigned thread_index)
{
    const uint64_t bit = UINT64_C(1) << thread_index;

    if ((atomic_fetch_or_explicit(&stripe->wait_mask, bit, memory_order_acq_rel) & bit) != 0)
        return true;
    fence_heavy(); /* either we see now that it is free, or its holder sees our bit after the release */
    return false;
}

void stripe_ask_no_more(struct stripe *stripe, unsigned thread_index)
{
    atomic_fetch_and_explicit(&stripe->wait_mask, ~(UINT64_C(1) << thread_index), memory_order_relaxed);
}

bool stripe_wait(struct stripe *stripe, unsigned thread_index)
{
    /* If it had asked: the thread that removes the bit wakes us after that, so for this request, too. */
    const bool asked = stripe_ask(stripe, thread_index);

    if (atomic_load_explicit(&stripe->lock.holder, memory_order_acquire) != 0)
        return true;
    /* If it had asked, the bit is for another request of this thread, which waits for its wake: the thread that
     * released the lock may not have read the mask yet. At worst the thread is woken once for nothing. */
    if (!asked)
        stripe_ask_no_more(stripe, thread_index);
    return false;
}

/* Others may do the same just now, under other stripes: the first one's stays. */
static COLD void database_create(struct store *store, const struct stripe *stripe, unsigned db)
{
    struct stripe_db *parts = mem_alloc_zero((store->stripe_mask + 1) * sizeof(*parts)), *none = NULL;
    unsigned bound = store_database_bound(store);

    stripe_assert_held(stripe);
    if (!atomic_compare_exchange_strong(&store->databases[db], &none, parts))
        mem_free(parts);
    while (bound <= db && !atomic_compare_exchange_weak(&store->database_bound, &bound, db + 1))
        continue;
}

struct stripe_db *stripe_db_use(struct store *store, struct stripe *stripe, unsigned db)
{
    struct stripe_db *keys = stripe_db(stripe, db);

    if (LIKELY(keys != NULL))
        return keys;
    database_create(store, stripe, db);
    return stripe_db(stripe, db);
}

void store_database_totals(const struct store *store, unsigned db, struct database_totals *totals)
{
    double sum_ms = 0;

    memset(totals, 0, sizeof(*totals));
    for (uint32_t i = 0; i <= store->stripe_mask; i++) {
        const struct stripe_db *keys = stripe_db(&store->stripes[i], db);
        const struct expiry *deadlines;

        if (keys == NULL)
            continue;
        totals->keys += table_count(&keys->keys);
        deadlines = atomic_load_explicit(&keys->deadlines, memory_order_acquire);
        if (deadlines == NULL)
            continue;
        totals->expires += atomic_load_explicit(&deadlines->live, memory_order_relaxed);
        sum_ms += expiry_sum_ms(deadlines);
    }
    if (totals->expires != 0) {
        double average_ms = (double)EXPIRY_EPOCH_MS + sum_ms / (double)totals->expires;

        /* Rounded it may be 2^63, which no int64_t is. */
        totals->average_deadline_ms = average_ms < (double)INT64_MAX ? (int64_t)average_ms : INT64_MAX;
    }
}

uint64_t store_key_count(const struct store *store, unsigned db)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i <= store->stripe_mask; i++) {
        const struct stripe_db *keys = stripe_db(&store->stripes[i], db);

        if (keys != NULL)
            count += table_count(&keys->keys);
    }
    return count;
}
