#include "active/part.h"

#include "active/node.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/gate.h"
#include "server/core/server.h"
#include "store/horizon.h"
#include "store/origins.h"
#include "store/stamp.h"
#include "store/window.h"

#include <stdlib.h>

/* ------------------------------------------------------------------------------------------------------ the rule -- */

static bool has(const struct part *part, struct merge_place place)
{
    return place.stamp <= part->level || place.stamp <= merge_vector_get(&part->have, place.origin);
}

static bool has_flushes(const struct part *part, const struct store *store)
{
    for (unsigned db = 0; db <= horizon_libraries_db(&store->horizon); db++) {
        if (!has(part, horizon_of(&store->horizon, db).flush))
            return false;
    }
    return true;
}

uint64_t part_level(const struct merge_vector *deeds, const struct merge_vector *have)
{
    uint64_t level = UINT64_MAX;

    for (uint32_t i = 0; i < deeds->count; i++) {
        const uint64_t id = deeds->items[i].id, begun = active_is_on() && id == node_origin() ? node_begun_at() : 0;
        const uint64_t there = MAX(merge_vector_get(have, id), begun);

        if (there < deeds->items[i].stamp)
            level = MIN(level, there);
    }
    return level;
}

static bool has_any(const struct merge_vector *have, const struct merge_vector *deeds)
{
    for (uint32_t i = 0; i < deeds->count; i++) {
        if (merge_vector_get(have, deeds->items[i].id) != 0)
            return true;
    }
    return false;
}

static const struct part *part_of_choice(const struct snapshot_choice *choice)
{
    return container_of((struct snapshot_choice *)(uintptr_t)choice, struct part, choice);
}

static bool chooses(const struct snapshot_choice *choice, const struct entry *entry)
{
    return part_entry_crosses(part_of_choice(choice), entry);
}

bool part_make(struct part *part, const struct merge_vector *deeds, const struct merge_vector *have)
{
    const struct store *store = server_instance()->store;

    gate_assert_alone();
    *part = (struct part){.choice = {.has = chooses}, .level = part_level(deeds, have)};
    merge_vector_copy(&part->have, have);
    if (has_any(have, deeds) && MAX(horizon_floor(&store->horizon), window_newest_library(store)) <= part->level &&
        has_flushes(part, store))
        return true;
    part_fini(part);
    return false;
}

void part_fini(struct part *part)
{
    merge_vector_fini(&part->have);
    *part = (struct part){.level = 0};
}

bool part_crosses(const struct part *part, struct merge_place last, bool overwrote)
{
    return last.stamp > part->level && !(overwrote && has(part, last));
}

/* A key without a version is of a plain file, which was the first that its node had. */
bool part_entry_crosses(const struct part *part, const struct entry *entry)
{
    struct store *store = server_instance()->store;
    const uint64_t version = entry_version(entry);
    struct merge_place last;

    if (version == 0)
        return part->level == 0;
    last = (struct merge_place){version_stamp(version), origins_of_version(&store->origins, version)};
    return part_crosses(part, last, version_overwrote(version));
}

const struct part *part_of_snapshot(const struct snapshot *keys)
{
    if (snapshot_has_all(keys))
        return NULL;
    assert(keys->choice->has == chooses);
    return part_of_choice(keys->choice);
}

/* ------------------------------------------------------------------------------------------------- a set of keys -- */

/* Two keys with one number would be a key too many: 2^-64 for each pair. */
static uint64_t number_of(unsigned db, const struct key *key)
{
    return key->hash + db * UINT64_C(0x9e3779b97f4a7c15);
}

void part_keys_add(struct part_keys *keys, unsigned db, const struct key *key)
{
    *ARRAY_PUSH(keys) = number_of(db, key);
    keys->is_sorted = false;
}

static int compare(const void *a, const void *b)
{
    const uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

    return (first > second) - (first < second);
}

bool part_keys_has(struct part_keys *keys, unsigned db, const struct key *key)
{
    const uint64_t number = number_of(db, key);

    if (keys->count == 0)
        return false;
    if (!keys->is_sorted)
        qsort(keys->items, keys->count, sizeof(*keys->items), compare);
    keys->is_sorted = true;
    return bsearch(&number, keys->items, keys->count, sizeof(*keys->items), compare) != NULL;
}

void part_keys_add_all(struct part_keys *keys, const struct part_keys *more)
{
    for (uint32_t i = 0; i < more->count; i++)
        *ARRAY_PUSH(keys) = more->items[i];
    keys->is_sorted = keys->is_sorted && more->count == 0;
}

void part_keys_fini(struct part_keys *keys)
{
    ARRAY_FINI(keys);
    keys->is_sorted = false;
}
