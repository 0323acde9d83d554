/* The functions of access.h for more than one key: whole databases, walks over keys, and due keys. */
#include "store/access.h"

#include "base/array.h"
#include "base/mem.h"
#include "base/random.h"
#include "store/access_priv.h"
#include "store/lazyfree.h"
#include "store/expiry.h"
#include "store/lookup.h"
#include "store/snapshot_live.h"
#include "store/stamp.h"
#include "store/subkey_ttl_priv.h"
#include "store/undo_priv.h"
#include "store/waiters.h"
#include "store/watch.h"
#include "store/window.h"

/* -------------------------------------------------------------------------------------------- whole databases -- */

/* The rest of a flushed table, to be freed by a background thread or at once. */
struct flushed {
    struct access access; /* holds everything in it: nobody else can reach it */
    struct table keys;
    uint64_t bytes; /* about, if the background thread frees it */
};

static void flushed_entry_free(void *item, void *context)
{
    struct flushed *flushed = context;

    lazyfree_of_value(&flushed->access, item, FREE_AT_ONCE);
    entry_free(item);
}

static void flushed_free(void *argument)
{
    struct flushed *flushed = argument;

    table_clear(&flushed->keys, flushed_entry_free, flushed);
    mem_free(flushed);
}

static void flushed_free_job(void *argument)
{
    const struct flushed *flushed = argument;
    uint64_t count = table_count(&flushed->keys), bytes = flushed->bytes;

    flushed_free(argument);
    lazyfree_done(count, bytes);
}

/* A key's share of the memory that is not about to be freed anyway. */
static uint64_t bytes_a_key(const struct store *store)
{
    uint64_t pending = lazyfree_pending_bytes(), keys = 0;
    uint64_t bytes = store->counted_bytes != NULL ? store->counted_bytes() : mem_used();

    for (unsigned db = 0; db < store_database_bound(store); db++)
        keys += store_key_count(store, db);
    return keys != 0 ? (bytes - MIN(bytes, pending)) / keys : 0;
}

static void note_upheaval(struct store *store)
{
    (void)atomic_fetch_add_explicit(&store->upheavals, 1, memory_order_relaxed);
}

void access_flush_db(struct access *access, unsigned db, bool background)
{
    struct store *store = access->store;
    const uint64_t key_bytes = background ? bytes_a_key(store) : 0;

    window_forget_db(access, db);
    assert(access->exclusive);
    access->found_key = NULL;
    undo_forget(access, db);
    note_upheaval(store);
    live_note_flush(store);
    for (uint32_t i = 0; i <= store->stripe_mask; i++) {
        struct stripe *stripe = &store->stripes[i];
        struct stripe_db *keys = stripe_db(stripe, db);
        struct expiry *deadlines;
        struct flushed *flushed;

        if (keys == NULL || table_count(&keys->keys) == 0)
            continue;
        watch_touch_db(access, stripe, db, keys, NULL);
        waiters_touch_db(access, stripe, db);
        access->dirty += table_count(&keys->keys);
        deadlines = atomic_load_explicit(&keys->deadlines, memory_order_relaxed);
        if (deadlines != NULL)
            expiry_clear(deadlines);
        flushed = mem_alloc(sizeof(*flushed));
        flushed->access = (struct access){.store = store, .exclusive = true};
        stripe->moves++;
        table_move(&flushed->keys, &keys->keys);
        flushed->bytes = table_count(&flushed->keys) * key_bytes;
        if (live_take_table(store, stripe, db, &flushed->keys, flushed_free, flushed))
            continue;
        if (background)
            lazyfree_submit(table_count(&flushed->keys), flushed->bytes, flushed_free_job, flushed);
        else
            flushed_free(flushed);
    }
}

void access_flush_all(struct access *access, bool background)
{
    struct store *store = access->store;

    assert(access->exclusive);
    for (unsigned db = 0; db < store_database_bound(store); db++)
        access_flush_db(access, db, background);
    atomic_store_explicit(&store->has_streams, false, memory_order_relaxed);
}

void access_swap_db(struct access *access, unsigned a, unsigned b)
{
    struct store *store = access->store;

    assert(access->exclusive);
    access->found_key = NULL;
    undo_forget(access, a);
    undo_forget(access, b);
    note_upheaval(store);
    live_note_swap(store, a, b);
    for (uint32_t i = 0; a != b && i <= store->stripe_mask; i++) {
        struct stripe *stripe = &store->stripes[i];
        struct stripe_db *first, *second;
        struct table keys;
        struct expiry *deadlines;

        if (stripe_db(stripe, a) == NULL && stripe_db(stripe, b) == NULL)
            continue;
        first = stripe_db_use(store, stripe, a);
        second = stripe_db_use(store, stripe, b);
        watch_touch_db(access, stripe, a, first, second);
        watch_touch_db(access, stripe, b, second, first);
        waiters_touch_db(access, stripe, a);
        waiters_touch_db(access, stripe, b);
        stripe->moves++;
        table_move(&keys, &first->keys);
        table_move(&first->keys, &second->keys);
        table_move(&second->keys, &keys);
        deadlines = atomic_load(&first->deadlines);
        atomic_store(&first->deadlines, atomic_load(&second->deadlines));
        atomic_store(&second->deadlines, deadlines);
    }
}

/* Whoever sums up deadlines reads ours without a lock: they stay, with other contents. */
static void exchange_deadlines(struct stripe_db *ours, struct stripe_db *others)
{
    struct expiry *first = atomic_load(&ours->deadlines), *second = atomic_load(&others->deadlines);

    if (first == NULL) {
        atomic_store(&ours->deadlines, second);
        atomic_store(&others->deadlines, NULL);
        return;
    }
    if (second == NULL) {
        second = expiry_create();
        atomic_store(&others->deadlines, second);
    }
    expiry_exchange(first, second);
}

static void exchange_parts(struct access *access, struct stripe *stripe, struct stripe_db *ours,
                           struct stripe_db *others, unsigned db)
{
    struct table keys;

    watch_touch_db(access, stripe, db, ours, others);
    waiters_touch_db(access, stripe, db);
    stripe->moves++;
    table_move(&keys, &ours->keys);
    table_move(&ours->keys, &others->keys);
    table_move(&others->keys, &keys);
    exchange_deadlines(ours, others);
}

void access_exchange(struct access *access, struct store *other)
{
    struct store *store = access->store;
    bool had_streams;

    assert(access->exclusive);
    assert(store->stripe_mask == other->stripe_mask && store->database_count == other->database_count);
    for (unsigned db = 0; db <= horizon_libraries_db(&store->horizon); db++)
        window_forget_db(access, db);
    access->found_key = NULL;
    note_upheaval(store);
    live_forsake(store);
    for (unsigned db = 0; db < MAX(store_database_bound(store), store_database_bound(other)); db++) {
        undo_forget(access, db);
        for (uint32_t i = 0; i <= store->stripe_mask; i++) {
            struct stripe *stripe = &store->stripes[i], *another = &other->stripes[i];

            exchange_parts(access, stripe, stripe_db_use(store, stripe, db), stripe_db_use(other, another, db), db);
        }
    }
    if (atomic_load_explicit(&other->has_jobs, memory_order_relaxed))
        atomic_store_explicit(&store->has_jobs, true, memory_order_relaxed);
    had_streams = atomic_load_explicit(&store->has_streams, memory_order_relaxed);
    atomic_store_explicit(&store->has_streams, atomic_load_explicit(&other->has_streams, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&other->has_streams, had_streams, memory_order_relaxed);
}

void access_note_loaded(struct access *access)
{
    struct store *store = access->store;

    assert(access->exclusive);
    note_upheaval(store);
    for (uint32_t i = 0; i <= store->stripe_mask; i++) {
        struct stripe *stripe = &store->stripes[i];

        for (unsigned db = 0; stripe->registries != NULL && db < store_database_bound(store); db++) {
            watch_touch_db(access, stripe, db, NULL, stripe_db(stripe, db));
            waiters_touch_db(access, stripe, db);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------ walking -- */

enum { RANDOM_BUSY_MOST = 3 /* after this many draws of busy stripes, each with a spin, a random key waits */ };

/* Holds one stripe for a walk; at the gate nothing needs to be taken. */
static bool walk_lock(struct access *access, uint32_t index)
{
    return access->exclusive || spinlock_acquire_bounded(&access->store->stripes[index].lock, ACCESS_LOCK_SPINS);
}

static void walk_unlock(struct access *access, uint32_t index)
{
    if (access->exclusive)
        return;
    stripe_release(access->store, &access->store->stripes[index]);
    lazyfree_after_release(access);
}

static uint64_t random_bits(void *context)
{
    return random_u64(context);
}

/* What is due of a key that a walk has met goes, like at every lookup. The stripe is still held. Keys are independent,
 * so each deletion is a record of its own, not part of a transaction. */
static void let_go(struct access *access, unsigned db, const struct entry *entry)
{
    struct buffer name = {0}; /* the entry goes, its name is needed to the end */
    struct key key;

    buffer_append_slice(&name, entry_key(entry));
    key = key_make(buffer_slice(&name));
    access_let_go(access, db, &key, entry);
    access->found_key = NULL;
    if (!access->exclusive)
        access_settle(access);
    buffer_fini(&name);
}

/* A random key that has not expired, of one stripe that is held. */
static bool random_of_stripe(struct access *access, unsigned db, uint32_t index, struct buffer *name)
{
    const struct stripe_db *keys = stripe_db(&access->store->stripes[index], db);

    for (unsigned try = 0; try < 100; try++) {
        const struct entry *entry = table_random(&keys->keys, random_bits, random_thread());

        if (entry == NULL)
            return false;
        if (!lookup_is_due(access, entry) ||
            (!lookup_is_expired(access, entry) && !subkey_ttl_all_due(access, entry))) {
            buffer_append_slice(name, entry_key(entry));
            return true;
        }
        if (!access_keeps_expired(access))
            let_go(access, db, entry);
    }
    return false;
}

/* The stripe of a random rank, so that every key weighs alike. False: there is no key, or just went. */
static bool random_stripe(const struct store *store, unsigned db, uint32_t *index)
{
    uint64_t total = store_key_count(store, db), rank = total != 0 ? random_below(random_thread(), total) : 0;

    for (*index = 0; total != 0 && *index <= store->stripe_mask; ++*index) {
        const struct stripe_db *keys = stripe_db(&store->stripes[*index], db);
        uint64_t count = keys != NULL ? table_count(&keys->keys) : 0;

        if (rank < count)
            return true;
        rank -= count;
    }
    return false;
}

enum access_walk access_random_key(struct access *access, unsigned db, struct buffer *name, uint32_t *busy)
{
    unsigned busy_count = 0;
    uint32_t index;

    access_assert_none_held(access);
    for (unsigned try = 0; try < 100 && busy_count < RANDOM_BUSY_MOST; try++) {
        bool found;

        if (!random_stripe(access->store, db, &index)) /* if one went meanwhile, another draw finds that out */
            continue;
        if (!walk_lock(access, index)) {
            *busy = index;
            busy_count++;
            continue;
        }
        found = random_of_stripe(access, db, index, name);
        walk_unlock(access, index);
        if (found)
            return WALK_DONE;
    }
    return busy_count != 0 ? WALK_BUSY : WALK_NOTHING;
}

struct walk {
    struct access *access;
    const struct access_visitor *visitor;
    unsigned db;
    uint64_t visited;
    bool deletes;      /* expired keys are deleted; otherwise only hidden */
    struct buffer due; /* names of keys of which something is due: size, bytes, size, bytes ... */
};

static void walk_visit(void *item, void *context)
{
    struct walk *walk = context;
    const struct access_visitor *visitor = walk->visitor;
    const struct entry *entry = item;

    walk->visited++;
    if (visitor->wanted != NULL && !visitor->wanted(entry, visitor->context))
        return;
    if (!visitor->sees_expired && lookup_is_due(walk->access, entry)) {
        struct slice name = entry_key(entry);

        if (walk->deletes) {
            buffer_append(&walk->due, &name.size, sizeof(name.size));
            buffer_append_slice(&walk->due, name);
            return;
        }
        entry = access_shown(walk->access, entry);
        if (entry == NULL)
            return;
    }
    visitor->visit(walk->access, walk->db, entry, visitor->context);
}

/* A walk deletes the expired keys that it has met, like every lookup, and visits the others. The stripe is still held.
 * The keys are independent, so each deletion is a record of its own, not part of a transaction. */
static void walk_expire(struct walk *walk)
{
    for (size_t at = 0; at < walk->due.size;) {
        const struct entry *entry;
        size_t size;
        struct key key;

        memcpy(&size, walk->due.data + at, sizeof(size));
        key = key_make(slice_make(walk->due.data + at + sizeof(size), size));
        entry = lookup_raw(walk->access, walk->db, &key);
        if (entry != NULL) { /* a scan may meet a key twice */
            access_let_go(walk->access, walk->db, &key, entry);
            entry = lookup_raw(walk->access, walk->db, &key);
        }
        walk->access->found_key = NULL;
        if (entry != NULL)
            walk->visitor->visit(walk->access, walk->db, entry, walk->visitor->context);
        if (!walk->access->exclusive)
            access_settle(walk->access);
        at += sizeof(size) + size;
    }
    buffer_clear(&walk->due);
}

enum access_walk access_scan(struct access *access, unsigned db, uint64_t *cursor, uint64_t want,
                             const struct access_visitor *visitor, uint32_t *busy)
{
    const struct store *store = access->store;
    struct walk walk = {.access = access, .visitor = visitor, .db = db, .deletes = !access_keeps_expired(access)};
    uint64_t position = *cursor & ((UINT64_C(1) << TABLE_SCAN_BITS) - 1);
    uint64_t index = *cursor >> TABLE_SCAN_BITS;
    bool has_begun = false;

    access_assert_none_held(access);
    for (; index <= store->stripe_mask; index++, position = 0) {
        const struct stripe_db *keys = stripe_db(&store->stripes[index], db);

        if (keys == NULL || table_count(&keys->keys) == 0)
            continue;
        if (walk.visited >= want)
            break;
        if (!walk_lock(access, (uint32_t)index)) {
            *busy = (uint32_t)index;
            if (!has_begun)
                return WALK_BUSY;
            break;
        }
        has_begun = true;
        do
            position = table_scan(&keys->keys, position, want - walk.visited, walk_visit, &walk);
        while (position != 0 && walk.visited < want);
        walk_expire(&walk);
        if (visitor->leave != NULL)
            visitor->leave(visitor->context);
        walk_unlock(access, (uint32_t)index);
        if (position != 0)
            break;
    }
    buffer_fini(&walk.due);
    *cursor = index <= store->stripe_mask ? index << TABLE_SCAN_BITS | position : 0;
    return WALK_DONE;
}

uint64_t access_scan_place(const struct access *access, const struct entry *entry)
{
    uint64_t hash = lookup_entry_hash(entry);
    uint32_t stripe = (uint32_t)hash & access->store->stripe_mask;

    access_assert_holds(access, stripe);
    return (uint64_t)stripe << TABLE_SCAN_BITS | table_scan_place(hash);
}

void access_each(struct access *access, unsigned db, const struct access_visitor *visitor)
{
    struct walk walk = {.access = access, .visitor = visitor, .db = db};

    assert(access->exclusive);
    for (uint32_t i = 0; i <= access->store->stripe_mask; i++) {
        const struct stripe_db *keys = stripe_db(&access->store->stripes[i], db);

        if (keys == NULL)
            continue;
        table_each(&keys->keys, walk_visit, &walk);
        if (visitor->leave != NULL)
            visitor->leave(visitor->context);
    }
}

/* --------------------------------------------------------------------------------------------- active expiry -- */

struct due_match {
    const struct access *access;
    uint64_t hash;
};

static bool due_visit(const void *item, void *context)
{
    const struct due_match *match = context;

    return lookup_entry_hash(item) == match->hash;
}

static const struct entry *find_by_hash(const struct access *access, const struct stripe_db *keys, uint64_t hash)
{
    struct due_match match = {access, hash};
    const uint64_t *slot = table_find_by_hash(&keys->keys, hash, due_visit, &match);

    return slot != NULL ? table_slot_item(slot) : NULL;
}

/* On an active node operations with a wall time below that have met it. */
static void note_freed(const struct access *access, int64_t wall)
{
    if (access_keeps_active(access))
        horizon_raise_freed(&access->store->horizon, wall);
}

/* Its memory was freed, or that of its last member. */
static void tell_window(struct access *access, unsigned db, const struct key *key)
{
    if (access->store->window != NULL)
        window_freed(access, db, key);
}

/* A key's record came due. */
static void due_key(struct access *access, unsigned db, const struct entry *entry, struct expiry_record record,
                    struct expiry *deadlines)
{
    struct buffer name = {0}; /* the entry goes, its name is needed to the end */
    struct key key;

    if (entry == NULL || entry_expire_ms(entry) == EXPIRE_NEVER)
        return;
    if (!lookup_is_expired(access, entry)) {
        expiry_put_back(deadlines, record.hash, entry_expire_ms(entry));
        return;
    }
    note_freed(access, entry_expire_ms(entry) + 1);
    buffer_append_slice(&name, entry_key(entry));
    key = (struct key){buffer_slice(&name), record.hash};
    access_expire_now(access, db, &key);
    tell_window(access, db, &key);
    access->found_key = NULL;
    buffer_fini(&name);
    access_settle(access);
}

/* The record of a key's members did: takes out up to `most`; returns how many. The record goes back if there are more
 * members with a deadline, due or not. */
static unsigned due_members(struct access *access, unsigned db, const struct entry *entry, struct expiry_record record,
                            struct expiry *members, unsigned most)
{
    struct buffer name = {0};
    unsigned count = 0;
    struct key key;

    if (entry == NULL || (entry->flags & ENTRY_MEMBERS) == 0)
        return 0;
    buffer_append_slice(&name, entry_key(entry));
    key = (struct key){buffer_slice(&name), record.hash};
    if (entry_member_due_ms(entry) < access->due_ms) {
        note_freed(access, access->due_ms);
        count = subkey_ttl_expire(access, db, &key, most);
        entry = lookup_raw(access, db, &key);
    }
    if (entry != NULL && (entry->flags & ENTRY_MEMBERS) != 0)
        expiry_put_back(members, record.hash, entry_member_due_ms(entry));
    else if (entry == NULL)
        tell_window(access, db, &key);
    if (count != 0)
        access_settle(access);
    buffer_fini(&name);
    return count;
}

/* Deadlines before this may pass here: W, on an active node, is how far all have come. */
static int64_t due_until(const struct access *access)
{
    return access_keeps_active(access) ? MIN(access->due_ms, horizon_wall(&access->store->horizon)) : access->due_ms;
}

/* An operation that is placed before the last one of this key may still come. */
static bool is_unsettled(const struct access *access, const struct entry *entry)
{
    return entry != NULL && access_keeps_active(access) && entry_version(entry) != 0 &&
           version_stamp(entry_version(entry)) > horizon_frontier(&access->store->horizon);
}

struct unsettled {
    struct expiry_record *items;
    uint32_t count, capacity;
};

static void put_unsettled_back(struct unsettled *unsettled, struct expiry *heap)
{
    for (uint32_t i = 0; i < unsettled->count; i++)
        expiry_put_back(heap, unsettled->items[i].hash, unsettled->items[i].when_ms);
    ARRAY_FINI(unsettled);
}

static unsigned expire_keys(struct access *access, unsigned db, const struct stripe_db *keys, struct expiry *deadlines,
                            unsigned most)
{
    struct unsettled unsettled = {0};
    struct expiry_record record;
    unsigned done = 0;

    for (; done < most && expiry_take_due(deadlines, access->due_ms, &record); done++) {
        const struct entry *entry = find_by_hash(access, keys, record.hash);

        if (UNLIKELY(is_unsettled(access, entry)))
            *ARRAY_PUSH(&unsettled) = record;
        else
            due_key(access, db, entry, record, deadlines);
    }
    put_unsettled_back(&unsettled, deadlines);
    return done;
}

static unsigned expire_members(struct access *access, unsigned db, const struct stripe_db *keys, struct expiry *members,
                               unsigned most)
{
    struct unsettled unsettled = {0};
    struct expiry_record record;
    unsigned done = 0, count;

    for (; done < most && expiry_take_due(members, access->due_ms, &record); done += MAX(count, 1U)) {
        const struct entry *entry = find_by_hash(access, keys, record.hash);

        count = 0;
        if (UNLIKELY(is_unsettled(access, entry)))
            *ARRAY_PUSH(&unsettled) = record;
        else
            count = due_members(access, db, entry, record, members, most - done);
    }
    put_unsettled_back(&unsettled, members);
    return done;
}

unsigned access_expire_due(struct access *access, uint32_t stripe_index, unsigned db, unsigned most)
{
    struct stripe_db *keys = stripe_db(&access->store->stripes[stripe_index], db);
    const int64_t due_ms = access->due_ms;
    struct expiry *deadlines, *members;
    unsigned done;

    assert(access_holds(access, stripe_index));
    if (keys == NULL || (deadlines = atomic_load_explicit(&keys->deadlines, memory_order_relaxed)) == NULL)
        return 0;
    access->due_ms = due_until(access);
    done = expire_keys(access, db, keys, deadlines, most);
    members = atomic_load_explicit(&deadlines->members, memory_order_relaxed);
    if (members != NULL && done < most)
        done += expire_members(access, db, keys, members, most - done);
    access->due_ms = due_ms;
    return done;
}

static bool has_members_of_type(const struct access *access, const struct stripe_db *keys, enum value_type type)
{
    const struct expiry *deadlines = atomic_load_explicit(&keys->deadlines, memory_order_relaxed), *members = NULL;

    if (deadlines != NULL)
        members = atomic_load_explicit(&deadlines->members, memory_order_relaxed);
    if (members == NULL || atomic_load_explicit(&members->live, memory_order_relaxed) == 0)
        return false;
    for (uint32_t i = 0; i < members->count; i++) {
        const struct entry *entry = find_by_hash(access, keys, members->records[i].hash);

        if (entry != NULL && entry->type == type && (entry->flags & ENTRY_MEMBERS) != 0)
            return true;
    }
    return false;
}

bool access_has_member_deadlines(const struct access *access, enum value_type type)
{
    const struct store *store = access->store;

    gate_assert_alone();
    for (uint32_t i = 0; i <= store->stripe_mask; i++) {
        for (unsigned db = 0; db < store_database_bound(store); db++) {
            const struct stripe_db *keys = stripe_db(&store->stripes[i], db);

            if (keys != NULL && has_members_of_type(access, keys, type))
                return true;
        }
    }
    return false;
}

bool access_had_streams(const struct access *access)
{
    gate_assert_alone();
    return atomic_load_explicit(&access->store->has_streams, memory_order_relaxed);
}

static bool has_due(const struct expiry *deadlines, int64_t now_ms)
{
    return deadlines != NULL && atomic_load_explicit(&deadlines->next_ms, memory_order_relaxed) < now_ms;
}

bool access_has_due(const struct access *access, uint32_t stripe_index, unsigned db)
{
    const struct stripe_db *keys = stripe_db(&access->store->stripes[stripe_index], db);
    const struct expiry *deadlines = keys != NULL ? atomic_load_explicit(&keys->deadlines, memory_order_acquire) : NULL;

    return has_due(deadlines, due_until(access)) ||
           (deadlines != NULL &&
            has_due(atomic_load_explicit(&deadlines->members, memory_order_acquire), due_until(access)));
}
