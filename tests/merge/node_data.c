#include "node_priv.h"

#include "base/array.h"
#include "base/assert.h"

#include <string.h>

static struct slice own_copy(struct slice name)
{
    return slice_make(mem_copy(name.data, name.size), name.size);
}

void merge_free_bytes(struct slice bytes)
{
    void *memory;

    memcpy(&memory, &bytes.data, sizeof(memory));
    mem_free(memory);
}

void merge_data_fini(struct merge_data *data, const struct merge_model *model)
{
    while (data->keys.count != 0)
        merge_data_remove(data, data->keys.count - 1, model);
    while (data->dirty.count != 0)
        merge_free_bytes(data->dirty.items[--data->dirty.count].name);
    for (uint32_t i = 0; i < data->history.count; i++)
        merge_entry_release(data->history.items[i]);
    mem_free(data->keys.items);
    mem_free(data->dirty.items);
    mem_free(data->history.items);
    *data = (struct merge_data){0};
}

void merge_data_copy(struct merge_data *to, const struct merge_data *from, const struct merge_model *model)
{
    *to = (struct merge_data){.horizon = from->horizon, .recheck = from->recheck};
    for (uint32_t i = 0; i < from->keys.count; i++) {
        struct merge_key *key = ARRAY_PUSH(&to->keys);

        key->name = own_copy(from->keys.items[i].name);
        merge_record_copy(&key->record, &from->keys.items[i].record, model);
    }
    for (uint32_t i = 0; i < from->dirty.count; i++)
        merge_data_mark(to, from->dirty.items[i].name, from->dirty.items[i].marked);
    ARRAY_RESERVE(&to->history, from->history.count);
    for (uint32_t i = 0; i < from->history.count; i++)
        merge_data_keep(to, from->history.items[i]);
}

struct merge_key *merge_data_find(const struct merge_data *data, struct slice name, uint32_t *at)
{
    uint32_t low = 0, high = data->keys.count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (slice_compare(data->keys.items[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (at != NULL)
        *at = low;
    return low < data->keys.count && slice_equal(data->keys.items[low].name, name) ? &data->keys.items[low] : NULL;
}

struct merge_key *merge_data_add(struct merge_data *data, uint32_t at, struct slice name)
{
    struct merge_key *key;

    ARRAY_RESERVE(&data->keys, 1);
    key = &data->keys.items[at];
    memmove(key + 1, key, (data->keys.count - at) * sizeof(*key));
    data->keys.count++;
    *key = (struct merge_key){.name = own_copy(name)};
    return key;
}

void merge_data_remove(struct merge_data *data, uint32_t at, const struct merge_model *model)
{
    struct merge_key *key = &data->keys.items[at];

    merge_free_bytes(key->name);
    merge_record_fini(&key->record, model);
    data->keys.count--;
    memmove(key, key + 1, (data->keys.count - at) * sizeof(*key));
}

struct merge_dirty *merge_data_find_dirty(const struct merge_data *data, struct slice name)
{
    for (uint32_t i = 0; i < data->dirty.count; i++) {
        if (slice_equal(data->dirty.items[i].name, name))
            return &data->dirty.items[i];
    }
    return NULL;
}

void merge_data_mark(struct merge_data *data, struct slice name, struct merge_place place)
{
    struct merge_dirty *dirty = merge_data_find_dirty(data, name);

    if (dirty == NULL) {
        dirty = ARRAY_PUSH(&data->dirty);
        *dirty = (struct merge_dirty){own_copy(name), place};
    } else if (merge_place_before(dirty->marked, place)) {
        dirty->marked = place;
    }
}

void merge_data_clean(struct merge_data *data, struct slice name)
{
    struct merge_dirty *dirty = merge_data_find_dirty(data, name);

    if (dirty == NULL)
        return;
    merge_free_bytes(dirty->name);
    *dirty = data->dirty.items[--data->dirty.count];
}

void merge_data_keep(struct merge_data *data, struct merge_entry *entry)
{
    *ARRAY_PUSH(&data->history) = merge_entry_acquire(entry);
}
