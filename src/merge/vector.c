#include "merge/vector.h"

#include "base/array.h"
#include "base/compiler.h"

#include <string.h>

/* The index of the first item whose id is not below, between these. */
static uint32_t seek_between(const struct merge_vector *vector, uint64_t id, uint32_t low, uint32_t high)
{
    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (vector->items[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t vector_seek(const struct merge_vector *vector, uint64_t id)
{
    return seek_between(vector, id, 0, vector->count);
}

/* The same, from an index on, in ever longer steps: it is near. */
static uint32_t seek_from(const struct merge_vector *vector, uint64_t id, uint32_t from)
{
    uint32_t step = 1, low = from;

    while (step < vector->count - low && vector->items[low + step - 1].id < id) {
        low += step;
        step *= 2;
    }
    return seek_between(vector, id, low, MIN(low + step, vector->count));
}

void merge_vector_fini(struct merge_vector *vector)
{
    mem_free(vector->items);
    *vector = (struct merge_vector){0};
}

void merge_vector_copy(struct merge_vector *to, const struct merge_vector *from)
{
    *to = (struct merge_vector){0};
    if (from->count == 0)
        return;
    to->items = mem_alloc(from->count * sizeof(*to->items));
    memcpy(to->items, from->items, from->count * sizeof(*to->items));
    to->count = to->capacity = from->count;
}

void merge_vector_set(struct merge_vector *vector, uint64_t id, uint64_t stamp)
{
    uint32_t at = vector_seek(vector, id);

    if (at == vector->count || vector->items[at].id != id) {
        ARRAY_RESERVE(vector, 1);
        memmove(&vector->items[at + 1], &vector->items[at], (vector->count - at) * sizeof(*vector->items));
        vector->items[at].id = id;
        vector->count++;
    }
    vector->items[at].stamp = stamp;
}

void merge_vector_remove(struct merge_vector *vector, uint64_t id)
{
    uint32_t at = vector_seek(vector, id);

    if (at == vector->count || vector->items[at].id != id)
        return;
    vector->count--;
    memmove(&vector->items[at], &vector->items[at + 1], (vector->count - at) * sizeof(*vector->items));
}

uint64_t merge_vector_get(const struct merge_vector *vector, uint64_t id)
{
    const struct merge_vector_item *item = merge_vector_find(vector, id);

    return item != NULL ? item->stamp : 0;
}

bool merge_vector_has(const struct merge_vector *vector, uint64_t id)
{
    return merge_vector_find(vector, id) != NULL;
}

struct merge_vector_item *merge_vector_find(const struct merge_vector *vector, uint64_t id)
{
    uint32_t at = vector_seek(vector, id);

    return at < vector->count && vector->items[at].id == id ? &vector->items[at] : NULL;
}

bool merge_vector_raise(struct merge_vector *vector, uint64_t id, uint64_t stamp)
{
    struct merge_vector_item *item = merge_vector_find(vector, id);

    if (item == NULL) {
        merge_vector_set(vector, id, stamp);
        return true;
    }
    if (stamp <= item->stamp)
        return false;
    item->stamp = stamp;
    return true;
}

/* Many are in both, or the vector is empty. */
void merge_vector_raise_all(struct merge_vector *vector, const struct merge_vector *other)
{
    uint32_t at = 0;

    if (vector->count == 0) {
        merge_vector_fini(vector);
        merge_vector_copy(vector, other);
        return;
    }
    for (uint32_t i = 0; i < other->count; i++) {
        const struct merge_vector_item item = other->items[i];

        at = seek_from(vector, item.id, at);
        if (at == vector->count || vector->items[at].id != item.id)
            merge_vector_set(vector, item.id, item.stamp);
        else if (vector->items[at].stamp < item.stamp)
            vector->items[at].stamp = item.stamp;
    }
}

bool merge_vector_covers(const struct merge_vector *vector, const struct merge_vector *other)
{
    struct merge_walk walk = {vector, 0};

    for (uint32_t i = 0; i < other->count; i++) {
        if (merge_walk_get(&walk, other->items[i].id) < other->items[i].stamp)
            return false;
    }
    return true;
}

const struct merge_vector_item *merge_walk_find(struct merge_walk *walk, uint64_t id)
{
    const struct merge_vector *vector = walk->vector;

    walk->at = seek_from(vector, id, walk->at);
    return walk->at < vector->count && vector->items[walk->at].id == id ? &vector->items[walk->at] : NULL;
}

uint64_t merge_walk_get(struct merge_walk *walk, uint64_t id)
{
    const struct merge_vector_item *item = merge_walk_find(walk, id);

    return item != NULL ? item->stamp : 0;
}
