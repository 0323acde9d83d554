/* The items of sorted sets: score, member, and optionally a deadline, in one allocation. */
#pragma once

#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

#define ZINDEX_MEMBER_BYTES_MOST UINT32_C(0x7FFFFFFF)
#define ZINDEX_DEADLINE_FLAG UINT32_C(0x80000000)
#define ZINDEX_NO_DEADLINE INT64_C(-1)

struct zindex_item {
    double score;  /* while the item is in an index, only zindex_set_score changes it */
    uint32_t size; /* size of the member; the upper bit: the item has a deadline, in the eight bytes before it */
    char member[];
};

/* Allocates an item and copies the member. */
struct zindex_item *zindex_item_create(double score, struct slice member, int64_t deadline_ms);
void zindex_item_destroy(struct zindex_item *item); /* accepts NULL */
struct mem_mover;
struct zindex_item *zindex_item_move(struct zindex_item *item, struct mem_mover *mover); /* returns its new address */
size_t zindex_item_memory_bytes(const struct zindex_item *item);                         /* bytes of its allocation */

static inline struct slice zindex_item_member(const struct zindex_item *item)
{
    return slice_make(item->member, item->size & ~ZINDEX_DEADLINE_FLAG);
}

static inline int64_t zindex_item_deadline(const struct zindex_item *item)
{
    int64_t deadline_ms = ZINDEX_NO_DEADLINE;

    if ((item->size & ZINDEX_DEADLINE_FLAG) != 0)
        memcpy(&deadline_ms, (const char *)item - sizeof(deadline_ms), sizeof(deadline_ms));
    return deadline_ms;
}

/* Returns a number below, equal to or above zero. */
static inline int zindex_compare(const struct zindex_item *a, const struct zindex_item *b)
{
    if (a->score != b->score)
        return a->score < b->score ? -1 : 1;
    return slice_compare(zindex_item_member(a), zindex_item_member(b));
}
