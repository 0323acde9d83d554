#include "store/watch.h"

#include "base/mem.h"
#include "store/key_registry.h"
#include "store/lookup.h"
#include "store/subkey_ttl_priv.h"

struct watch_node {
    struct list_node key_node; /* guarded by the stripe's lock */
    struct list_node set_node; /* owner: the connection's thread */
    struct watch_set *set;
    struct registered_key *watched;
    uint32_t stripe;
    int64_t seen_ms; /* when it was watched */
    bool expired;    /* it was past its deadline already when it was watched */
};

struct watch_set *watch_set_create(void)
{
    struct watch_set *set = mem_alloc_zero(sizeof(*set));

    list_init(&set->nodes);
    return set;
}

bool watch_set_is_touched(const struct watch_set *set)
{
    return atomic_load_explicit(&set->touched, memory_order_relaxed); /* ordered by the stripes' locks */
}

void watch_set_touch(struct watch_set *set)
{
    atomic_store_explicit(&set->touched, true, memory_order_relaxed);
}

uint32_t watch_set_count(const struct watch_set *set)
{
    return (uint32_t)list_count(&set->nodes);
}

size_t watch_memory_bytes(uint32_t count)
{
    return count * (sizeof(struct watch_node) + key_registry_key_bytes());
}

void watch_add(struct watch_set *set, struct access *access, unsigned db, const struct key *key)
{
    uint32_t stripe_index = access_stripe_of(access, key);
    struct stripe *stripe = &access->store->stripes[stripe_index];
    struct registered_key *watched;
    struct watch_node *node;
    const struct entry *entry;

    assert(access_holds(access, stripe_index));
    watched = key_registry_use(&stripe_registries_use(stripe)->watched, db, key);
    LIST_FOREACH(other, &watched->nodes) {
        if (container_of(other, struct watch_node, key_node)->set == set)
            return;
    }
    node = mem_alloc(sizeof(*node));
    *node = (struct watch_node){.set = set, .watched = watched, .stripe = stripe_index, .seen_ms = access->now_ms};
    /* Members that were dead already do not count as a change when they are removed. */
    if (atomic_load_explicit(&access->store->keeps_expired, memory_order_relaxed) == 0)
        access_expire_members(access, db, key);
    entry = lookup_raw(access, db, key);
    node->expired = entry != NULL && lookup_is_expired(access, entry);
    list_push_back(&watched->nodes, &node->key_node);
    list_push_back(&set->nodes, &node->set_node);
}

/* Has the key expired, or a member that lived at `since_ms`? */
static bool has_lost(const struct access *access, const struct entry *entry, int64_t since_ms)
{
    return lookup_is_due(access, entry) && (lookup_is_expired(access, entry) ||
                                            subkey_ttl_due(entry, access->now_ms) > subkey_ttl_due(entry, since_ms));
}

bool watch_set_has_expired(const struct watch_set *set, struct access *access)
{
    LIST_FOREACH(link, &set->nodes) {
        const struct watch_node *node = container_of(link, struct watch_node, set_node);
        const struct registered_key *watched = node->watched;
        const struct key key = registered_key_key(watched);
        const struct entry *entry = lookup_raw(access, watched->db, &key);

        access_assert_holds(access, node->stripe);
        if (!node->expired && entry != NULL && has_lost(access, entry, node->seen_ms))
            return true;
    }
    return false;
}

void watch_set_each_stripe(const struct watch_set *set, void (*visit)(uint32_t stripe, void *context), void *context)
{
    LIST_FOREACH(link, &set->nodes)
        visit(container_of(link, struct watch_node, set_node)->stripe, context);
}

static void node_unlink(struct stripe *stripe, struct watch_node *node)
{
    struct registered_key *watched = node->watched;

    stripe_assert_held(stripe);
    list_remove(&node->key_node);
    list_remove(&node->set_node);
    mem_free(node);
    if (list_is_empty(&watched->nodes))
        key_registry_drop(&stripe->registries->watched, watched);
}

bool watch_set_try_destroy(struct watch_set **set, struct store *store)
{
    spinlock_assert_none_held();
    LIST_FOREACH_SAFE(link, &(*set)->nodes) {
        struct watch_node *node = container_of(link, struct watch_node, set_node);
        struct stripe *stripe = &store->stripes[node->stripe];

        if (!spinlock_acquire_bounded(&stripe->lock, 50))
            continue;
        node_unlink(stripe, node);
        stripe_release(store, stripe);
    }
    if (!list_is_empty(&(*set)->nodes))
        return false;
    mem_free(*set);
    *set = NULL;
    return true;
}

void watch_touch_key(struct stripe *stripe, unsigned db, const struct key *key, bool exists)
{
    const struct registered_key *watched = key_registry_find(&stripe->registries->watched, db, key);

    stripe_assert_held(stripe);
    if (watched == NULL)
        return;
    LIST_FOREACH(link, &watched->nodes) {
        struct watch_node *node = container_of(link, struct watch_node, key_node);

        /* Watched when it was past its deadline and gone since: for its watcher nothing has changed. */
        if (!node->expired || exists)
            watch_set_touch(node->set);
        node->expired = false;
    }
}

struct touch_db {
    struct access *access;
    unsigned db;
    const struct stripe_db *keys, *other;
};

static const struct entry *entry_in(const struct stripe_db *keys, const struct registered_key *watched)
{
    const struct key key = registered_key_key(watched);

    return keys != NULL ? lookup_in_table(&keys->keys, &key) : NULL;
}

/* For a watcher the key was there if it had not yet expired when it began to watch, and is there if it is not over now;
 * one that has come past its deadline already is as if it was watched so. */
static void touch_db_visit(void *item, void *context)
{
    struct registered_key *watched = item;
    const struct touch_db *touch = context;
    const struct entry *before, *after;
    bool comes_expired;

    if (watched->db != touch->db)
        return;
    before = entry_in(touch->keys, watched);
    after = entry_in(touch->other, watched);
    comes_expired = after != NULL && lookup_is_expired(touch->access, after);
    LIST_FOREACH(link, &watched->nodes) {
        struct watch_node *node = container_of(link, struct watch_node, key_node);

        if ((before != NULL && !node->expired) || (after != NULL && !comes_expired))
            watch_set_touch(node->set);
        node->expired = comes_expired;
    }
}

void watch_touch_db(struct access *access, struct stripe *stripe, unsigned db, const struct stripe_db *keys,
                    const struct stripe_db *other)
{
    struct touch_db touch = {access, db, keys, other};

    assert(access->exclusive);
    if (stripe->registries != NULL)
        table_each(&stripe->registries->watched.keys, touch_db_visit, &touch);
}
