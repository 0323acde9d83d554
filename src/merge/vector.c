#include "merge/vector.h"

#include "base/array.h"

#include <string.h>

/* The index of the first item whose id is not below. */
static uint32_t vector_seek(const struct merge_vector *vector, uint64_t id)
{
    uint32_t low = 0, high = vector->count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (vector->items[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
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

void merge_vector_raise_all(struct merge_vector *vector, const struct merge_vector *other)
{
    for (uint32_t i = 0; i < other->count; i++)
        merge_vector_raise(vector, other->items[i].id, other->items[i].stamp);
}

bool merge_vector_covers(const struct merge_vector *vector, const struct merge_vector *other)
{
    for (uint32_t i = 0; i < other->count; i++) {
        if (merge_vector_get(vector, other->items[i].id) < other->items[i].stamp)
            return false;
    }
    return true;
}
