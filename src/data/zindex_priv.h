/* Internals of the index: nodes.
 *
 * A node is an array of rows that is stored by columns, so that a search reads adjacent scores:
 *
 *     leaf    scores | items                                  linked with its neighbours
 *     inner   scores | items (the first below) | children | counts (of the items below)
 *
 * Invariants
 *  1. Rows are in order. A node has at least one row, except a new node inside an insert.
 *  2. An inner row has exactly the first item below it, its score, and the exact number of items below it.
 *  3. All leaves have the same depth. Only the root may have less than full capacity. An inner root has two rows or
 *     more.
 *
 * Filling. A full node first moves rows to a neighbour with room, and splits only if both are nearly full. A node that
 * is full at the very end (or beginning) of the index stays full, and a new node takes the new row: ascending inserts
 * leave full nodes behind. A node that has become less than half full joins a neighbour if both fit into one node with
 * an eighth to spare. After random inserts, leaves are about four fifths full.
 *
 * A path holds the nodes on the way down, counted from the leaf: level 0 is the leaf, level `height` the root. */
#pragma once

#include "base/assert.h"
#include "base/compiler.h"
#include "data/zindex.h"

#include <string.h>

enum { SCORES, ITEMS, LEAF_COLUMNS, CHILDREN = LEAF_COLUMNS, COUNTS, INNER_COLUMNS };

/* With a million members, leaves of 30, 62 or 126 rows and inner nodes of 31 or 63 rows made no measurable difference;
 * small nodes suit small sets. Leaves without scores took 10 bytes a member less (42 instead of 52), but then each step
 * of a search reads an item: random inserts took 1,030 ns instead of 370, ranks 1,450 instead of 810. */
enum {
    LEAF_ROWS = 62,  /* 1 KiB */
    INNER_ROWS = 31, /* 1 KiB */
    ROOT_ROWS = 6,   /* a single leaf begins with this capacity: 128 bytes */
    HEIGHT_MOST = 16
};

union word {
    double score;
    struct zindex_item *item;
    struct zindex_node *child;
    uint64_t count;
};
static_assert(sizeof(union word) == 8, "a column's element is a word");

struct zindex_node {
    uint16_t row_count;
    uint16_t capacity;
    uint16_t column_count;
    struct zindex_node *previous, *next; /* leaves only */
    union word words[];
};

struct row {
    union word words[INNER_COLUMNS];
};

struct step {
    struct zindex_node *node;
    unsigned slot;
};

struct path {
    struct step steps[HEIGHT_MOST + 1];
};

static inline union word *column(struct zindex_node *node, unsigned number)
{
    return node->words + (size_t)number * node->capacity;
}

static inline bool is_leaf(const struct zindex_node *node)
{
    return node->column_count == LEAF_COLUMNS;
}

static inline unsigned rows_most(const struct zindex_node *node)
{
    return is_leaf(node) ? LEAF_ROWS : INNER_ROWS;
}

/* --- searching --- */

/* A position: before or behind all rows that equal the key. Those by member are for an index of equal scores. */
struct key {
    double score;
    struct slice member;
};
enum place { BEFORE_SCORE, BEHIND_SCORE, BEFORE_ITEM, BEHIND_ITEM, BEFORE_MEMBER, BEHIND_MEMBER };

static ALWAYS_INLINE bool precedes_member(const struct zindex_item *item, const struct key *key, bool or_is)
{
    const int order = slice_compare(zindex_item_member(item), key->member);

    return order < 0 || (or_is && order == 0);
}

/* Whether an item comes before the key, or is it. */
static ALWAYS_INLINE bool precedes_item(const struct zindex_item *item, const struct key *key, bool or_is)
{
    return item->score != key->score ? item->score < key->score : precedes_member(item, key, or_is);
}

typedef double score_pair __attribute__((vector_size(16)));
typedef int64_t count_pair __attribute__((vector_size(16)));

/* How many rows have a score below this one, and how many have one that is not above. Of random scores a processor
 * guesses each second branch of a binary search wrong; two compares of two scores each, for all of a node, take less
 * (changing a score in a set of 100,000: 610 to 700 ns instead of 830 to 1,020). */
static ALWAYS_INLINE void count_scores(const union word *scores, unsigned count, double score, unsigned *below,
                                       unsigned *not_above)
{
    const score_pair key = {score, score};
    count_pair less = {0, 0}, most = {0, 0};
    unsigned i = 0;

    for (; i + 4 <= count; i += 4) {
        score_pair first, second;

        memcpy(&first, scores + i, sizeof(first));
        memcpy(&second, scores + i + 2, sizeof(second));
        less -= (count_pair)(first < key); /* -1 where it is so */
        most -= (count_pair)(first <= key);
        less -= (count_pair)(second < key);
        most -= (count_pair)(second <= key);
    }
    *below = (unsigned)(less[0] + less[1]);
    *not_above = (unsigned)(most[0] + most[1]);
    for (; i < count; i++) {
        *below += scores[i].score < score;
        *not_above += scores[i].score <= score;
    }
}

/* Returns how many rows precede the position, counted from the node's first row; not less than `begin`. */
static ALWAYS_INLINE unsigned search_rows(struct zindex_node *node, unsigned begin, enum place place,
                                          const struct key *key)
{
    const bool or_is = place == BEHIND_SCORE || place == BEHIND_ITEM || place == BEHIND_MEMBER;
    const union word *items = column(node, ITEMS);
    unsigned end = node->row_count, below;

    if (place != BEFORE_MEMBER && place != BEHIND_MEMBER) {
        count_scores(column(node, SCORES), node->row_count, key->score, &below, &end);
        begin = MAX(begin, below);
    }
    if (place == BEFORE_SCORE || place == BEHIND_SCORE)
        return or_is ? MAX(begin, end) : begin;
    while (begin < end) {
        const unsigned middle = (begin + end) / 2;

        if (precedes_member(items[middle].item, key, or_is))
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Descends to the leaf of the position: in each node, the last child whose first item precedes it, or the first
 * child. */
static ALWAYS_INLINE void descend(const struct zindex *index, struct path *path, enum place place,
                                  const struct key *key)
{
    struct zindex_node *node = index->root;

    for (unsigned level = index->height; level > 0; level--) {
        unsigned slot = search_rows(node, 1, place, key) - 1;

        path->steps[level] = (struct step){node, slot};
        node = column(node, CHILDREN)[slot].child;
    }
    path->steps[0] = (struct step){node, search_rows(node, 0, place, key)};
}

static inline struct key key_of(const struct zindex_item *item)
{
    return (struct key){item->score, zindex_item_member(item)};
}

/* The path to the position behind an item that is or may be in the index. The index is not empty. */
void zindex_descend(const struct zindex *index, struct path *path, const struct zindex_item *item);
/* The path to an item that is in the index. */
void zindex_find(const struct zindex *index, struct path *path, const struct zindex_item *item);
/* The path to the item of a rank below the count. */
void zindex_find_rank(const struct zindex *index, struct path *path, uint64_t rank);
