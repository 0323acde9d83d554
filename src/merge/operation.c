#include "merge/operation.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

static struct slice keep(char **room, struct slice bytes)
{
    struct slice kept = {*room, bytes.size};

    if (bytes.size != 0)
        memcpy(*room, bytes.data, bytes.size);
    *room += (bytes.size + 7) & ~(size_t)7; /* words may be structs */
    return kept;
}

struct merge_entry *merge_entry_create(uint64_t origin, uint64_t stamp, uint64_t prev, int64_t wall, bool flush,
                                       const struct merge_item *items, uint32_t item_count)
{
    size_t size = sizeof(struct merge_entry) + item_count * sizeof(struct merge_op);
    struct merge_entry *entry;
    char *room;

    assert(prev < stamp);
    for (uint32_t i = 0; i < item_count; i++)
        size += ((items[i].key.size + 7) & ~(size_t)7) + ((items[i].words.size + 7) & ~(size_t)7);
    entry = mem_alloc(size);
    *entry = (struct merge_entry){.references = 1,
                                  .op_count = item_count,
                                  .origin = origin,
                                  .stamp = stamp,
                                  .prev = prev,
                                  .wall = wall,
                                  .flush = flush};
    room = (char *)&entry->ops[item_count];
    for (uint32_t i = 0; i < item_count; i++) {
        const struct merge_item *item = &items[i];
        struct merge_op *op = &entry->ops[i];

        assert(!item->evicts || item->overwrites);
        op->entry = entry;
        op->overwrites = item->overwrites;
        op->evicts = item->evicts;
        op->seen = item->seen;
        op->place = (struct merge_place){stamp, origin};
        if (item->evicts && !merge_broken(MERGE_BREAK_EVICT_LAST) && !merge_broken(MERGE_BREAK_EVICT_CONDITIONAL))
            op->place = merge_place_behind(item->seen);
        op->key = keep(&room, item->key);
        op->words = keep(&room, item->words);
    }
    return entry;
}

struct merge_entry *merge_entry_acquire(struct merge_entry *entry)
{
    entry->references++;
    return entry;
}

void merge_entry_release(struct merge_entry *entry)
{
    if (entry == NULL)
        return;
    assert(entry->references != 0);
    if (--entry->references == 0)
        mem_free(entry);
}

uint64_t merge_op_bytes(const struct merge_op *op)
{
    return sizeof(*op) + op->words.size + sizeof(void *);
}

struct merge_value *merge_op_run(const struct merge_op *op, struct merge_value *value, struct merge_undo **undo,
                                 const struct merge_model *model)
{
    assert(undo == NULL || !op->overwrites || merge_broken(MERGE_BREAK_OVERWRITE_RUNS_ALL));
    if (op->overwrites) {
        model->destroy(model, value);
        value = NULL;
    }
    return model->apply(model, value, op, undo);
}
