#include "replication/local_keys.h"

#include "base/gate.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "base/table.h"
#include "replication/options.h"
#include "server/config/options.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/run/dispatch.h"
#include "server/run/pause.h"
#include "store/access.h"

#include <stddef.h>
#include <string.h>

enum { LOOK_KEYS = 256, LOOKS_MOST = 20, DUE_MOST = 64 }; /* ten times a second */

struct local_key {
    uint64_t hash;
    int64_t due_ms; /* when it was noted last; it may have changed or gone since */
    unsigned db;
    size_t size;
    char name[];
};

static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY */
    struct table keys GUARDED_BY(lock);
    _Atomic uint64_t count; /* atomic: relaxed; of `keys` */
    uint64_t position;      /* worker 0's: where it looks next */
} local = {.lock = {.rank = LOCK_REGISTRY}};

/* ------------------------------------------------------------------------------------------------------- noting -- */

/* The earliest deadline, of the key or of a member. */
static int64_t due_ms_of(const struct entry *entry)
{
    const int64_t own_ms = entry_expire_ms(entry), member_ms = entry_member_due_ms(entry);

    if (own_ms == EXPIRE_NEVER || member_ms == EXPIRE_NEVER)
        return own_ms == EXPIRE_NEVER ? member_ms : own_ms;
    return MIN(own_ms, member_ms);
}

struct wanted {
    const struct key *key;
    unsigned db;
};

static uint64_t hash_of(const void *item)
{
    return ((const struct local_key *)item)->hash;
}

static bool is_wanted(const void *item, const void *context)
{
    const struct local_key *key = item;
    const struct wanted *wanted = context;

    return key->db == wanted->db && slice_equal(slice_make(key->name, key->size), wanted->key->name);
}

static void note(unsigned db, const struct key *key, int64_t due_ms)
{
    const struct wanted wanted = {key, db};
    struct local_key *noted;

    spinlock_acquire(&local.lock);
    noted = table_find(&local.keys, key->hash, is_wanted, &wanted);
    if (noted == NULL) {
        noted = mem_alloc(sizeof(*noted) + key->name.size);
        *noted = (struct local_key){.hash = key->hash, .db = db, .size = key->name.size};
        memcpy(noted->name, key->name.data, key->name.size);
        table_insert(&local.keys, noted->hash, noted, hash_of);
    }
    noted->due_ms = due_ms;
    atomic_store_explicit(&local.count, table_count(&local.keys), memory_order_relaxed);
    spinlock_release(&local.lock);
}

static void after(struct store_observer *observer, const struct change *change)
{
    const struct entry *entry = change_entry(change);

    (void)observer;
    if (!role_follows() || access_follows(change->access) || entry == NULL || due_ms_of(entry) == EXPIRE_NEVER)
        return;
    note(change->db, change->key, due_ms_of(entry));
}

static void free_key(void *item, void *context)
{
    (void)context;
    mem_free(item);
}

void local_keys_update(void)
{
    const bool are_noted = role_follows() && !OPTION_IS(option_replica_read_only);

    gate_assert_alone();
    store_set_observed(server_instance()->store, OBSERVE_LOCAL_KEYS, are_noted ? OBSERVE_LOCAL_KEYS : 0);
    if (role_follows())
        return; /* what was set while writing was allowed is to go yet */
    spinlock_acquire(&local.lock);
    table_clear(&local.keys, free_key, NULL);
    atomic_store_explicit(&local.count, 0, memory_order_relaxed);
    spinlock_release(&local.lock);
}

uint64_t local_keys_count(void)
{
    return atomic_load_explicit(&local.count, memory_order_relaxed);
}

/* ----------------------------------------------------------------------------------------------------- expiring -- */

struct due {
    struct local_key *items[DUE_MOST]; /* taken out of the table */
    unsigned count;
    int64_t now_ms;
};

static void take_due(void *item, void *context)
{
    struct local_key *key = item;
    struct due *due = context;

    if (key->due_ms <= due->now_ms && due->count < DUE_MOST)
        due->items[due->count++] = key;
}

static void find_due(struct due *due)
{
    for (unsigned look = 0; look < LOOKS_MOST && due->count < DUE_MOST; look++) {
        const unsigned before = due->count;

        spinlock_acquire(&local.lock);
        local.position = table_scan(&local.keys, local.position, LOOK_KEYS, take_due, due);
        for (unsigned i = before; i < due->count; i++) {
            const struct key key = {{due->items[i]->name, due->items[i]->size}, due->items[i]->hash};
            const struct wanted wanted = {&key, due->items[i]->db};
            uint64_t *slot = table_find_slot(&local.keys, key.hash, is_wanted, &wanted);

            (void)table_remove(&local.keys, key.hash, slot);
        }
        atomic_store_explicit(&local.count, table_count(&local.keys), memory_order_relaxed);
        spinlock_release(&local.lock);
        if (local.position == 0)
            return;
    }
}

struct run {
    struct local_key *noted;
    struct key key;
};

/* To look for it as a writer does deletes it if it is due. If it has another deadline by now, it is noted again. */
static void expire(struct worker *worker, void *context)
{
    const struct run *run = context;
    const struct entry *entry;

    if (!role_follows())
        return;
    entry = access_find(&worker->run.access, run->noted->db, &run->key);
    if (entry != NULL && due_ms_of(entry) != EXPIRE_NEVER)
        note(run->noted->db, &run->key, due_ms_of(entry));
    worker->run.access.found_key = NULL; /* it points at ours */
}

static void sample(struct server *server)
{
    struct worker *worker = &server->workers[0];
    struct due due = {0};

    worker_assert_zero(worker);
    if (LIKELY(local_keys_count() == 0) || pause_is_on() || worker->reentrant ||
        atomic_load_explicit(&server->cron_paused, memory_order_relaxed))
        return;
    due.now_ms = worker_now_ms(worker);
    find_due(&due);
    for (unsigned i = 0; i < due.count; i++) {
        struct run run = {due.items[i], {{due.items[i]->name, due.items[i]->size}, due.items[i]->hash}};

        if (!dispatch_run_unasked(worker, &run.key, 1, expire, &run))
            note(run.noted->db, &run.key, run.noted->due_ms); /* something is in the way: next time */
        mem_free(run.noted);
    }
    if (worker->has_deferred)
        worker_run_deferred(worker);
}

static bool start(struct server *server)
{
    static struct store_observer observer = {.after = after};

    gate_assert_main_alone();
    store_observe(server->store, &observer);
    return true;
}

static void end(struct server *server)
{
    (void)server;
    gate_assert_main_alone();
    spinlock_acquire(&local.lock);
    table_clear(&local.keys, free_key, NULL);
    spinlock_release(&local.lock);
}

const struct lifecycle local_keys_lifecycle = {.server_start = start, .server_sample = sample, .server_end = end};
