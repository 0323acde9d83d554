/* The order of a sorted set: items by score, then by member; ranks, ranges and scans.
 *
 * A counted B+tree. Leaves hold the items' addresses with a copy of their scores beside them, so that a search touches
 * an item only where scores are equal. Inner nodes hold for each child its first item with that item's score, and how
 * many items are below it: rank and item-at-rank cost one way down. Leaves are linked, so scans do not climb.
 *
 * The index never locks: whoever owns it guards it, also for reading. Items are the caller's, in an allocation of their
 * own; who wants to find them by member keeps them in a table as well. No two items of an index are equal. Scores are
 * never NaN; -0 equals 0. Members are compared as unsigned bytes, and the shorter first. */
#pragma once

#include "base/slice.h"
#include "data/zindex_item.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- the index --- */

struct zindex_node;

/* All zero is a valid empty index and owns nothing. */
struct zindex {
    struct zindex_node *root; /* NULL: no items */
    uint64_t count;
    uint32_t height; /* of the root above the leaves */
    uint32_t leaf_count;
    uint32_t inner_count;
};

typedef void (*zindex_item_fn)(struct zindex_item *item, void *context);

static inline uint64_t zindex_count(const struct zindex *index)
{
    return index->count;
}

void zindex_insert(struct zindex *index, struct zindex_item *item); /* no equal item is in the index */
void zindex_remove(struct zindex *index, struct zindex_item *item); /* the item is in the index; it stays whole */

/* Gives an item of the index another score and its place among the others. */
void zindex_set_score(struct zindex *index, struct zindex_item *item, double score);
/* Puts an equal item (it was reallocated) in the place of one that is in the index. Neither is kept or freed. */
void zindex_replace(struct zindex *index, const struct zindex_item *item, struct zindex_item *by);

uint64_t zindex_rank(const struct zindex *index, const struct zindex_item *item); /* the item is in the index */
struct zindex_item *zindex_at(const struct zindex *index, uint64_t rank);         /* NULL: there are not that many */

/* Removes the items of ranks first ... end - 1; `take_item` gets each, in order, may free it, and leaves the index
 * alone. */
void zindex_remove_range(struct zindex *index, uint64_t first, uint64_t end, zindex_item_fn take_item, void *context);
/* Frees the index's own memory and leaves it empty; `take_item` (may be NULL) gets every item, in order. */
void zindex_clear(struct zindex *index, zindex_item_fn take_item, void *context);

/* Moves the nodes to where they leave no holes, and lets `relocate` do so with the items: it returns the item's address
 * from then on. From rank `first` on, by about `most` items; returns where to go on, 0 at the end. */
struct mem_mover;
typedef struct zindex_item *(*zindex_relocate_fn)(struct zindex_item *item, void *context);
uint64_t zindex_relocate(struct zindex *index, uint64_t first, uint64_t most, struct mem_mover *mover,
                         zindex_relocate_fn relocate, void *context);

/* Fills an empty index with items that are sorted already (zindex_compare). Nodes are as full as they can be. */
void zindex_build(struct zindex *index, struct zindex_item *const *items, uint64_t count);

uint64_t zindex_memory_bytes(const struct zindex *index); /* of the index itself, without its struct and items */
void zindex_validate(const struct zindex *index);         /* asserts every invariant */

/* --- places, ranges and scans ---
 *
 * A cursor stands between two items (or before the first, or after the last); its rank is the number of items before
 * it. The items from one cursor to another are the ranks first.rank ... end.rank - 1, so a range's size is the
 * difference, and scores 1 <= s < 3 are
 *
 *     from zindex_seek_score(index, 1, ZINDEX_BEFORE) to zindex_seek_score(index, 3, ZINDEX_BEFORE).
 *
 * The two may come in the wrong order if the range is none (3 <= s < 1). A cursor is good until the index changes. */
enum zindex_side {
    ZINDEX_BEFORE, /* before all items that equal what is sought */
    ZINDEX_AFTER   /* after all of them */
};

struct zindex_cursor {
    struct zindex_node *leaf; /* NULL: the index is empty */
    uint32_t slot;
    uint64_t rank;
};

struct zindex_cursor zindex_seek_rank(const struct zindex *index, uint64_t rank); /* a rank too high: after the last */
struct zindex_cursor zindex_seek_score(const struct zindex *index, double score, enum zindex_side side);
struct zindex_cursor zindex_seek_item(const struct zindex *index, const struct zindex_item *item,
                                      enum zindex_side side);

/* By member alone, for ranges by lex: means something if all items have the same score, and does no harm otherwise. */
enum zindex_lex {
    ZINDEX_LEX_FIRST, /* "-": before all */
    ZINDEX_LEX_MEMBER,
    ZINDEX_LEX_LAST /* "+": after all */
};
struct zindex_cursor zindex_seek_lex(const struct zindex *index, enum zindex_lex lex, struct slice member,
                                     enum zindex_side side);

/* The item after the cursor, which then stands behind it; NULL at the end. */
struct zindex_item *zindex_next(struct zindex_cursor *cursor);
/* The item before the cursor, which then stands in front of it; NULL at the beginning. */
struct zindex_item *zindex_previous(struct zindex_cursor *cursor);
