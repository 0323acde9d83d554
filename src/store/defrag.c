#include "store/defrag.h"

#include "store/expiry.h"
#include "store/lookup.h"
#include "store/snapshot_large.h"
#include "store/subkey_ttl_priv.h"

/* One hold of a stripe. */
struct hold {
    struct access *access;
    struct defrag_walk *walk;
    struct mem_mover mover;
    uint64_t key_hits, key_misses;
};

void defrag_walk_init(struct defrag_walk *walk, uint32_t first, struct defrag_counters *counters)
{
    *walk = (struct defrag_walk){.stripe = first, .counters = counters};
}

/* ------------------------------------------------------------------------------------------------------ values -- */

static void relocate_blob(struct entry *entry, struct mem_mover *mover)
{
    struct blob *blob = entry_blob(entry);

    if (blob != NULL && blob_is_exclusive(blob))
        entry_word_store(entry, ENTRY_WORD, (uint64_t)(uintptr_t)mem_move(mover, blob, 0));
}

/* Behind the value come its members' deadlines: positions in them have this bit. */
#define IN_LIFETIMES (UINT64_C(1) << 63)

static uint64_t relocate_subkey_ttls(struct hold *hold, struct entry *entry, uint64_t position, uint64_t most)
{
    if ((entry->flags & ENTRY_MEMBERS) == 0 || large_is_listed(hold->access->store, entry_value(entry)))
        return 0;
    position = subkey_ttl_relocate(entry, position & ~IN_LIFETIMES, most, &hold->mover);
    return position != 0 ? position | IN_LIFETIMES : 0;
}

/* About `most` elements of the value from `position` on; returns where to go on, 0 at its end. */
static uint64_t relocate_data(struct hold *hold, struct entry *entry, uint64_t position, uint64_t most)
{
    const struct value_ops *ops = hold->access->store->types[entry->type].ops;
    struct value value;

    if (ops == NULL || ops->relocate == NULL)
        return 0;
    value = entry_value(entry);
    if (large_is_listed(hold->access->store, value))
        return 0;
    position = ops->relocate(&value, position, most, &hold->mover);
    entry_word_store(entry, ENTRY_WORD, (uint64_t)(uintptr_t)value.data);
    return position;
}

/* Likewise, with the memory it refers to. */
static uint64_t relocate_pointer(struct hold *hold, struct entry *entry, uint64_t position, uint64_t most)
{
    if ((position & IN_LIFETIMES) != 0)
        return relocate_subkey_ttls(hold, entry, position, most);
    position = relocate_data(hold, entry, position, most);
    return position != 0 ? position : relocate_subkey_ttls(hold, entry, 0, most);
}

static void relocate_value(struct hold *hold, struct entry *entry)
{
    struct defrag_walk *walk = hold->walk;
    uint64_t position;

    if (entry->type == TYPE_STRING) {
        relocate_blob(entry, &hold->mover);
        return;
    }
    position = relocate_pointer(hold, entry, 0, DEFRAG_SMALL_FIELDS);
    if (position != 0) {
        assert(walk->value_count < DEFRAG_VALUES_MOST);
        walk->values[walk->value_count++] = (struct defrag_value){lookup_entry_hash(entry), position};
    }
}

/* A table_relocate_fn. */
static void *relocate_entry(void *item, void *context)
{
    struct hold *hold = context;
    uint64_t moved_before = hold->mover.moved;
    struct entry *entry = mem_move(&hold->mover, item, 0);

    relocate_value(hold, entry);
    if (hold->mover.moved != moved_before)
        hold->key_hits++;
    else
        hold->key_misses++;
    return entry;
}

static bool same_hash(const void *item, void *context)
{
    return lookup_entry_hash(item) == *(const uint64_t *)context;
}

/* Continues in the last of the large values, if its key still exists. */
static void step_in_value(struct hold *hold, struct stripe_db *keys)
{
    struct defrag_value *value = &hold->walk->values[hold->walk->value_count - 1];
    const uint64_t *slot = table_find_by_hash(&keys->keys, value->hash, same_hash, &value->hash);
    struct entry *entry = slot != NULL ? table_slot_item(slot) : NULL;

    value->position = entry == NULL ? 0
                                    : relocate_pointer(hold, entry, value->position, MAX(hold->walk->most_fields, 1));
    if (value->position == 0)
        hold->walk->value_count--;
}

/* ----------------------------------------------------------------------------------------------------- stripes -- */

/* Back to the beginning of a database. */
static void walk_to(struct defrag_walk *walk, uint32_t stripe, unsigned db)
{
    walk->stripe = stripe;
    walk->db = db;
    walk->position = 0;
    walk->value_count = 0;
}

/* To the next database of the stripe that may have keys, or the first of the next stripe. */
static void walk_to_next(struct defrag_walk *walk, const struct store *store, uint32_t distance)
{
    if (walk->db + 1 < store_database_bound(store))
        walk_to(walk, walk->stripe, walk->db + 1);
    else
        walk_to(walk, walk->stripe + distance, 0);
}

/* False: that was the end of this database's keys. */
static bool step_in_table(struct hold *hold, struct stripe_db *keys)
{
    struct defrag_walk *walk = hold->walk;
    struct expiry *deadlines = atomic_load_explicit(&keys->deadlines, memory_order_relaxed);

    if (walk->position == 0 && deadlines != NULL)
        expiry_relocate(deadlines, &hold->mover);
    walk->position = table_relocate(&keys->keys, walk->position, DEFRAG_STEP_ITEMS, &hold->mover, relocate_entry, hold);
    return walk->position != 0;
}

static void count(const struct hold *hold)
{
    struct defrag_walk *walk = hold->walk;

    walk->moved += hold->mover.moved;
    walk->seen += hold->mover.moved + hold->mover.stayed;
    counter_add(&walk->counters->hits, hold->mover.moved);
    counter_add(&walk->counters->misses, hold->mover.stayed);
    counter_add(&walk->counters->key_hits, hold->key_hits);
    counter_add(&walk->counters->key_misses, hold->key_misses);
}

/* False: done with this database of this stripe, or the stripe is busy. */
static bool step_in_stripe(struct access *access, struct defrag_walk *walk, struct stripe_db *keys)
{
    struct hold hold = {.access = access, .walk = walk};
    bool locks = !access->exclusive;
    uint32_t busy;

    if (locks && !access_lock(access, &walk->stripe, 1, &busy))
        return false;
    if (walk->value_count != 0)
        step_in_value(&hold, keys);
    else
        walk->in_table = step_in_table(&hold, keys);
    access->found_key = NULL;
    access->store->stripes[walk->stripe].moves++;
    if (locks)
        access_unlock(access, &walk->stripe, 1);
    count(&hold);
    return walk->value_count != 0 || walk->in_table;
}

bool defrag_step(struct access *access, struct defrag_walk *walk, uint32_t first, uint32_t distance)
{
    const struct store *store = access->store;

    access_assert_none_held(access);
    while (walk->stripe <= store->stripe_mask) {
        struct stripe_db *keys = stripe_db(&store->stripes[walk->stripe], walk->db);

        if (keys != NULL && table_count(&keys->keys) != 0) {
            if (!step_in_stripe(access, walk, keys))
                walk_to_next(walk, store, distance);
            return true;
        }
        walk_to_next(walk, store, distance);
    }
    walk_to(walk, first, 0);
    return false;
}
