#include "data/zindex_item.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mem_move.h"

#include <math.h>

static size_t deadline_bytes(uint32_t size)
{
    return (size & ZINDEX_DEADLINE_FLAG) != 0 ? sizeof(int64_t) : 0;
}

struct zindex_item *zindex_item_create(double score, struct slice member, int64_t deadline_ms)
{
    uint32_t flag = deadline_ms != ZINDEX_NO_DEADLINE ? ZINDEX_DEADLINE_FLAG : 0;
    size_t before = deadline_bytes(flag);
    char *memory = mem_alloc(before + offsetof(struct zindex_item, member) + member.size);
    struct zindex_item *item = (struct zindex_item *)(void *)(memory + before);

    assert(member.size <= ZINDEX_MEMBER_BYTES_MOST);
    assert(!isnan(score));
    memcpy(memory, &deadline_ms, before);
    item->score = score;
    item->size = (uint32_t)member.size | flag;
    if (member.size != 0)
        memcpy(item->member, member.data, member.size);
    return item;
}

void zindex_item_destroy(struct zindex_item *item)
{
    if (item != NULL)
        mem_free((char *)item - deadline_bytes(item->size));
}

struct zindex_item *zindex_item_move(struct zindex_item *item, struct mem_mover *mover)
{
    size_t before = deadline_bytes(item->size);
    char *memory = mem_move(mover, (char *)item - before, 0);

    return (struct zindex_item *)(void *)(memory + before);
}

size_t zindex_item_memory_bytes(const struct zindex_item *item)
{
    return mem_usable((const char *)item - deadline_bytes(item->size));
}
