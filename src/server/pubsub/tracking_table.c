#include "server/pubsub/tracking_table.h"

#include "base/assert.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/random.h"
#include "store/store.h"

#include <string.h>

static struct table *tables;        /* global: one a stripe, guarded by it */
static const struct store *store;   /* global: const after start, as the next */
static uint32_t table_total;        /* global */
static _Atomic uint64_t key_count;  /* global: atomic, relaxed */
static _Atomic uint64_t item_count; /* global: atomic, relaxed */

void tracking_table_setup(const struct store *of)
{
    gate_assert_main_alone();
    assert(tables == NULL);
    store = of;
    table_total = store->stripe_mask + 1;
    tables = mem_alloc_zero(table_total * sizeof(struct table));
}

static uint64_t hash_of(const void *item)
{
    return ((const struct tracked_key *)item)->hash;
}

static bool is_named(const void *item, const void *key)
{
    const struct tracked_key *tracked = item;

    return slice_equal(slice_make(tracked->name, tracked->size), ((const struct key *)key)->name);
}

/* Never below zero: items that are removed were counted under the same lock. */
static void count(int64_t keys, int64_t items)
{
    int64_t keys_before = (int64_t)atomic_fetch_add_explicit(&key_count, (uint64_t)keys, memory_order_relaxed);
    int64_t items_before = (int64_t)atomic_fetch_add_explicit(&item_count, (uint64_t)items, memory_order_relaxed);

    assert(keys_before + keys >= 0);
    assert(items_before + items >= 0);
}

void tracked_key_destroy(struct tracked_key **tracked)
{
    if (*tracked == NULL)
        return;
    for (uint32_t i = 0; i < (*tracked)->count; i++)
        client_ref_release(&(*tracked)->readers[i]);
    mem_free((*tracked)->readers);
    mem_free(*tracked);
    *tracked = NULL;
}

/* The index of the reader, or its index if it were inserted. */
static uint32_t place_of(const struct tracked_key *tracked, const struct client_ref *reader)
{
    uint32_t low = 0, high = tracked->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if ((uintptr_t)tracked->readers[middle] < (uintptr_t)reader)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Room for one more: those who have gone make it, if they are many; so a key holds at most twice its living readers. */
static void make_room(struct tracked_key *tracked)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < tracked->count; i++) {
        if (client_ref_is_gone(tracked->readers[i]))
            client_ref_release(&tracked->readers[i]);
        else
            tracked->readers[kept++] = tracked->readers[i];
    }
    count(0, (int64_t)kept - (int64_t)tracked->count);
    tracked->count = kept;
    if (kept >= tracked->capacity / 2 || tracked->capacity == 0) {
        tracked->capacity = tracked->capacity * 2 + 1;
        tracked->readers = mem_realloc(tracked->readers, tracked->capacity * sizeof(struct client_ref *));
    }
    assert(tracked->count < tracked->capacity);
}

void tracking_table_add(const struct access *access, const struct key *key, struct client_ref *reader)
{
    uint32_t stripe = access_stripe_of(access, key), place;
    struct tracked_key *tracked = table_find(&tables[stripe], key->hash, is_named, key);

    access_assert_holds(access, stripe);
    if (tracked == NULL) {
        tracked = mem_alloc(sizeof(*tracked) + key->name.size);
        *tracked = (struct tracked_key){.hash = key->hash, .size = key->name.size};
        memcpy(tracked->name, key->name.data, key->name.size);
        table_insert(&tables[stripe], key->hash, tracked, hash_of);
        count(1, 0);
    }
    place = place_of(tracked, reader);
    if (place < tracked->count && tracked->readers[place] == reader)
        return;
    if (tracked->count == tracked->capacity) {
        make_room(tracked);
        place = place_of(tracked, reader);
    }
    assert(place <= tracked->count && tracked->count < tracked->capacity);
    memmove(&tracked->readers[place + 1], &tracked->readers[place],
            (tracked->count - place) * sizeof(struct client_ref *));
    tracked->readers[place] = client_ref_acquire(reader);
    tracked->count++;
    count(0, 1);
}

static struct tracked_key *take(uint32_t stripe, uint64_t *slot)
{
    struct tracked_key *tracked = table_slot_item(slot);

    table_remove(&tables[stripe], tracked->hash, slot);
    count(-1, -(int64_t)tracked->count);
    return tracked;
}

struct tracked_key *tracking_table_take(const struct access *access, const struct key *key)
{
    uint32_t stripe = access_stripe_of(access, key);
    uint64_t *slot;

    access_assert_holds(access, stripe);
    if (table_count(&tables[stripe]) == 0)
        return NULL;
    slot = table_find_slot(&tables[stripe], key->hash, is_named, key);
    return slot != NULL ? take(stripe, slot) : NULL;
}

bool tracking_table_has_some(uint32_t stripe)
{
    assert(stripe < table_total);
    return table_count(&tables[stripe]) != 0;
}

static uint64_t random_bits(void *context)
{
    return random_u64(context);
}

struct tracked_key *tracking_table_take_random(uint32_t stripe)
{
    const struct tracked_key *tracked = table_random(&tables[stripe], random_bits, random_thread());
    struct key key;
    uint64_t *slot;

    stripe_assert_held(&store->stripes[stripe]);
    if (tracked == NULL)
        return NULL;
    key = (struct key){slice_make(tracked->name, tracked->size), tracked->hash};
    slot = table_find_slot(&tables[stripe], key.hash, is_named, &key);
    return slot != NULL ? take(stripe, slot) : NULL;
}

static void free_item(void *item, void *context)
{
    struct tracked_key *tracked = item;

    (void)context;
    count(-1, -(int64_t)tracked->count);
    tracked_key_destroy(&tracked);
}

void tracking_table_clear(void)
{
    gate_assert_alone();
    for (uint32_t i = 0; i < table_total && tracking_table_key_count() != 0; i++)
        table_clear(&tables[i], free_item, NULL);
    assert(tracking_table_key_count() == 0 && tracking_table_item_count() == 0);
}

void tracking_table_teardown(void)
{
    gate_assert_main_alone();
    tracking_table_clear();
    mem_free(tables);
    tables = NULL;
    table_total = 0;
}

uint64_t tracking_table_key_count(void)
{
    return atomic_load_explicit(&key_count, memory_order_relaxed);
}

uint64_t tracking_table_item_count(void)
{
    return atomic_load_explicit(&item_count, memory_order_relaxed);
}

const struct info_row tracking_table_info[] = {
    INFO_CALL("tracking_total_keys", tracking_table_key_count),
    INFO_CALL("tracking_total_items", tracking_table_item_count),
    {0},
};
