/* The order of a sorted set: items by score, then by member; with ranks, ranges and scans.
 *
 * It is a counted B+tree. Leaves hold the addresses of items and a copy of their scores, so a search reads an item only
 * if scores are equal. Inner nodes hold for each child its first item with its score, and the number of items below it.
 * So rank and item-at-rank take one descent. Leaves are linked, so scans do not climb.
 *
 * The index never locks: its owner guards it, also for reading. Items belong to the caller, in their own allocations.
 * To find items by member, the caller keeps them in a table as well. No two items of an index are equal. Scores are
 * never NaN; -0 equals 0. Members are compared as unsigned bytes; a prefix comes first. */
#pragma once

#include "base/slice.h"
#include "data/zindex_item.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- the index --- */

struct zindex_node;

/* All-zero memory is an empty index and owns nothing. */
struct zindex {
    struct zindex_node *root; /* NULL: no items */
    uint64_t count;
    uint32_t height; /* levels above the leaves */
    uint32_t leaf_count;
    uint32_t inner_count;
};

typedef void (*zindex_item_fn)(struct zindex_item *item, void *context);

static inline uint64_t zindex_count(const struct zindex *index)
{
    return index->count;
}

void zindex_insert(struct zindex *index, struct zindex_item *item); /* no equal item is in the index */
void zindex_remove(struct zindex *index, struct zindex_item *item); /* the item is in the index; it is not freed */

/* Changes the score of an item in the index, and moves it to its new position. */
void zindex_set_score(struct zindex *index, struct zindex_item *item, double score);
/* Replaces an item of the index by an equal one, after the item was reallocated. Keeps and frees neither. */
void zindex_replace(struct zindex *index, const struct zindex_item *item, struct zindex_item *by);

uint64_t zindex_rank(const struct zindex *index, const struct zindex_item *item); /* the item is in the index */
struct zindex_item *zindex_at(const struct zindex *index, uint64_t rank); /* NULL: rank is not below the count */

/* Removes the items of ranks first ... end - 1. Calls `take_item` for each, in order; it may free the item but must not
 * use the index. */
void zindex_remove_range(struct zindex *index, uint64_t first, uint64_t end, zindex_item_fn take_item, void *context);
/* Frees the index's own memory and leaves it empty. Calls `take_item` (may be NULL) for every item, in order. */
void zindex_clear(struct zindex *index, zindex_item_fn take_item, void *context);

/* Defragments: moves nodes, and calls `relocate` for items, which returns the item's new address. Handles about `most`
 * items from rank `first` on. Returns the next rank, 0 at the end. */
struct mem_mover;
typedef struct zindex_item *(*zindex_relocate_fn)(struct zindex_item *item, void *context);
uint64_t zindex_relocate(struct zindex *index, uint64_t first, uint64_t most, struct mem_mover *mover,
                         zindex_relocate_fn relocate, void *context);

/* Fills an empty index with sorted items (zindex_compare). Nodes are filled completely. */
void zindex_build(struct zindex *index, struct zindex_item *const *items, uint64_t count);

uint64_t zindex_memory_bytes(const struct zindex *index); /* memory of the index itself, without its struct and items */
void zindex_validate(const struct zindex *index);         /* asserts every invariant */

/* --- cursors, ranges and scans ---
 *
 * A cursor is between two items, before the first or after the last. Its rank is the number of items before it. The
 * items between two cursors have the ranks first.rank ... end.rank - 1. So the size of a range is the difference, and
 * scores 1 <= s < 3 are
 *
 *     from zindex_seek_score(index, 1, ZINDEX_BEFORE) to zindex_seek_score(index, 3, ZINDEX_BEFORE).
 *
 * If the range is empty (3 <= s < 1), the two may be in the wrong order. A cursor is valid until the index changes. */
enum zindex_side {
    ZINDEX_BEFORE, /* before all items equal to the argument */
    ZINDEX_AFTER   /* after all items equal to the argument */
};

struct zindex_cursor {
    struct zindex_node *leaf; /* NULL: the index is empty */
    uint32_t slot;
    uint64_t rank;
};

/* A rank beyond the count: after the last item. */
struct zindex_cursor zindex_seek_rank(const struct zindex *index, uint64_t rank);
struct zindex_cursor zindex_seek_score(const struct zindex *index, double score, enum zindex_side side);
struct zindex_cursor zindex_seek_item(const struct zindex *index, const struct zindex_item *item,
                                      enum zindex_side side);

/* Seeks by member alone, for ranges by lex. The result has a meaning only if all items have the same score. */
enum zindex_lex {
    ZINDEX_LEX_FIRST, /* "-": before all */
    ZINDEX_LEX_MEMBER,
    ZINDEX_LEX_LAST /* "+": after all */
};
struct zindex_cursor zindex_seek_lex(const struct zindex *index, enum zindex_lex lex, struct slice member,
                                     enum zindex_side side);

/* Returns the item after the cursor and moves the cursor behind it. NULL at the end. */
struct zindex_item *zindex_next(struct zindex_cursor *cursor);
/* Returns the item before the cursor and moves the cursor in front of it. NULL at the beginning. */
struct zindex_item *zindex_previous(struct zindex_cursor *cursor);
