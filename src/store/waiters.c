#include "store/waiters.h"

#include "base/array.h"
#include "base/mem.h"

/* ------------------------------------------------------------------------------------------------------- needs -- */

static void need_add(struct stripe_registries *registries, uint32_t stripe)
{
    for (uint32_t i = 0; i < registries->needs.count; i++) {
        if (registries->needs.items[i].stripe == stripe) {
            registries->needs.items[i].count++;
            return;
        }
    }
    *ARRAY_PUSH(&registries->needs) = (struct wait_need){stripe, 1};
}

static void need_remove(struct stripe_registries *registries, uint32_t stripe)
{
    uint32_t i = 0;

    while (registries->needs.items[i].stripe != stripe)
        i++;
    assert(i < registries->needs.count);
    if (--registries->needs.items[i].count == 0)
        registries->needs.items[i] = registries->needs.items[--registries->needs.count];
}

void waiters_each_need(const struct stripe *stripe, void (*visit)(uint32_t stripe, void *context), void *context)
{
    stripe_assert_held(stripe);
    if (stripe->registries == NULL)
        return;
    for (uint32_t i = 0; i < stripe->registries->needs.count; i++)
        visit(stripe->registries->needs.items[i].stripe, context);
}

/* ---------------------------------------------------------------------------------------------- coming, leaving -- */

static void count_key(_Atomic uint32_t *count, bool counts, uint32_t change)
{
    if (counts)
        atomic_fetch_add_explicit(count, change, memory_order_relaxed);
}

static bool is_last_in(const struct registered_key *key, const struct waiter *waiter)
{
    struct list_node *last = list_last(&key->nodes);

    return last != NULL && container_of(last, struct wait_node, node)->waiter == waiter;
}

void waiter_enter(struct waiter *waiter, struct access *access, unsigned db, const struct key *keys, uint32_t key_count)
{
    waiter->nodes = mem_alloc(key_count * sizeof(struct wait_node));
    waiter->node_count = 0;
    for (uint32_t i = 0; i < key_count; i++) {
        uint32_t index = access_stripe_of(access, &keys[i]);
        struct stripe_registries *registries;
        struct registered_key *key;
        struct wait_node *node;

        assert(access_holds(access, index));
        registries = stripe_registries_use(&access->store->stripes[index]);
        key = key_registry_use(&registries->waited, db, &keys[i]);
        if (is_last_in(key, waiter)) /* nobody else can have come meanwhile */
            continue;
        node = &waiter->nodes[waiter->node_count++];
        *node = (struct wait_node){.key = key, .waiter = waiter, .stripe = index};
        count_key(&access->store->waited_count, list_is_empty(&key->nodes), 1);
        count_key(&access->store->loss_count, waiter->wants_losses && key->loss_count == 0, 1);
        list_push_back(&key->nodes, &node->node);
        key->loss_count += waiter->wants_losses;
        if (waiter->has_target)
            need_add(registries, waiter->target_stripe);
    }
    waiter->linked_count = waiter->node_count;
    if (waiter->has_target)
        atomic_fetch_add_explicit(&access->store->mover_count, 1, memory_order_relaxed);
}

void waiter_leave_node(struct store *store, struct wait_node *node)
{
    struct stripe_registries *registries = store->stripes[node->stripe].registries;
    struct registered_key *key = node->key;

    stripe_assert_held(&store->stripes[node->stripe]);
    list_remove(&node->node);
    node->key = NULL;
    key->loss_count -= node->waiter->wants_losses;
    count_key(&store->waited_count, list_is_empty(&key->nodes), UINT32_MAX);
    count_key(&store->loss_count, node->waiter->wants_losses && key->loss_count == 0, UINT32_MAX);
    if (node->waiter->has_target)
        need_remove(registries, node->waiter->target_stripe);
}

bool waiter_try_leave(struct waiter *waiter, struct store *store)
{
    spinlock_assert_none_held();
    while (waiter->linked_count != 0) {
        struct wait_node *node = &waiter->nodes[waiter->linked_count - 1];
        struct stripe *stripe = &store->stripes[node->stripe];
        struct registered_key *key;

        if (!spinlock_acquire_bounded(&stripe->lock, 50))
            return false;
        key = node->key;
        if (key != NULL) {
            waiter_leave_node(store, node);
            if (list_is_empty(&key->nodes))
                key_registry_drop(&stripe->registries->waited, key);
        }
        stripe_release(store, stripe);
        waiter->linked_count--;
    }
    if (waiter->has_target)
        atomic_fetch_sub_explicit(&store->mover_count, 1, memory_order_relaxed);
    mem_free(waiter->nodes);
    waiter->nodes = NULL;
    return true;
}

/* ------------------------------------------------------------------------------------------------------- ready -- */

static void make_ready(struct access *access, struct registered_key *key)
{
    if (key->is_ready)
        return;
    key->is_ready = true;
    key->next_ready = NULL;
    if (access->ready == NULL)
        access->ready = key;
    else
        access->ready_last->next_ready = key;
    access->ready_last = key;
}

void waiters_touch_key(struct access *access, struct stripe *stripe, unsigned db, const struct key *key)
{
    struct registered_key *waited = key_registry_find(&stripe->registries->waited, db, key);

    stripe_assert_held(stripe);
    if (waited != NULL)
        make_ready(access, waited);
}

struct touch {
    struct access *access;
    unsigned db;
};

static void touch_visit(void *item, void *context)
{
    const struct touch *touch = context;
    struct registered_key *key = item;

    if (key->db == touch->db)
        make_ready(touch->access, key);
}

void waiters_touch_db(struct access *access, struct stripe *stripe, unsigned db)
{
    struct touch touch = {access, db};

    assert(access->exclusive);
    if (stripe->registries != NULL)
        table_each(&stripe->registries->waited.keys, touch_visit, &touch);
}

struct registered_key *waiters_take_ready(struct access *access)
{
    struct registered_key *key = access->ready;

    if (key == NULL)
        return NULL;
    assert(key->is_ready);
    access->ready = key->next_ready;
    key->is_ready = false;
    return key;
}

void waiters_settle(struct access *access, struct registered_key *key)
{
    const struct key name = registered_key_key(key);

    access_assert_holds(access, access_stripe_of(access, &name));
    if (list_is_empty(&key->nodes) && !key->is_ready)
        key_registry_drop(&access->store->stripes[access_stripe_of(access, &name)].registries->waited, key);
}
