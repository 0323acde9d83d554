#include "data/zindex_priv.h"

enum { PREFETCH_ROWS = 8 };

/* --- the way down --- */

void zindex_descend(const struct zindex *index, struct path *path, const struct zindex_item *item)
{
    struct key key = key_of(item);

    descend(index, path, BEHIND_ITEM, &key);
}

void zindex_find(const struct zindex *index, struct path *path, const struct zindex_item *item)
{
    assert(index->root != NULL);
    zindex_descend(index, path, item);
    assert(path->steps[0].slot > 0);
    path->steps[0].slot--;
    assert(column(path->steps[0].node, ITEMS)[path->steps[0].slot].item == item);
}

void zindex_find_rank(const struct zindex *index, struct path *path, uint64_t rank)
{
    struct zindex_node *node = index->root;

    for (unsigned level = index->height; level > 0; level--) {
        const union word *counts = column(node, COUNTS);
        unsigned slot = 0;

        for (; rank >= counts[slot].count; slot++)
            rank -= counts[slot].count;
        path->steps[level] = (struct step){node, slot};
        node = column(node, CHILDREN)[slot].child;
    }
    path->steps[0] = (struct step){node, (unsigned)rank};
}

static uint64_t path_rank(const struct zindex *index, const struct path *path)
{
    uint64_t rank = path->steps[0].slot;

    for (unsigned level = index->height; level > 0; level--) {
        const union word *counts = column(path->steps[level].node, COUNTS);

        for (unsigned i = 0; i < path->steps[level].slot; i++)
            rank += counts[i].count;
    }
    return rank;
}

/* --- ranks and places --- */

uint64_t zindex_rank(const struct zindex *index, const struct zindex_item *item)
{
    struct path path;

    zindex_find(index, &path, item);
    return path_rank(index, &path);
}

struct zindex_item *zindex_at(const struct zindex *index, uint64_t rank)
{
    struct path path;

    if (rank >= index->count)
        return NULL;
    zindex_find_rank(index, &path, rank);
    return column(path.steps[0].node, ITEMS)[path.steps[0].slot].item;
}

static struct zindex_cursor cursor_at(const struct zindex *index, const struct path *path)
{
    return (struct zindex_cursor){path->steps[0].node, path->steps[0].slot, path_rank(index, path)};
}

struct zindex_cursor zindex_seek_rank(const struct zindex *index, uint64_t rank)
{
    struct zindex_cursor cursor = {NULL, 0, 0};
    struct path path;

    if (index->root == NULL)
        return cursor;
    rank = MIN(rank, index->count);
    zindex_find_rank(index, &path, rank == index->count ? rank - 1 : rank);
    cursor.leaf = path.steps[0].node;
    cursor.slot = path.steps[0].slot + (rank == index->count);
    cursor.rank = rank;
    return cursor;
}

struct zindex_cursor zindex_seek_score(const struct zindex *index, double score, enum zindex_side side)
{
    struct key key = {score, SLICE_EMPTY};
    struct path path;

    if (index->root == NULL)
        return (struct zindex_cursor){NULL, 0, 0};
    if (side == ZINDEX_BEFORE)
        descend(index, &path, BEFORE_SCORE, &key);
    else
        descend(index, &path, BEHIND_SCORE, &key);
    return cursor_at(index, &path);
}

struct zindex_cursor zindex_seek_item(const struct zindex *index, const struct zindex_item *item, enum zindex_side side)
{
    struct key key = key_of(item);
    struct path path;

    if (index->root == NULL)
        return (struct zindex_cursor){NULL, 0, 0};
    if (side == ZINDEX_BEFORE)
        descend(index, &path, BEFORE_ITEM, &key);
    else
        zindex_descend(index, &path, item);
    return cursor_at(index, &path);
}

struct zindex_cursor zindex_seek_lex(const struct zindex *index, enum zindex_lex lex, struct slice member,
                                     enum zindex_side side)
{
    struct key key = {0, member};
    struct path path;

    if (lex != ZINDEX_LEX_MEMBER || index->root == NULL)
        return zindex_seek_rank(index, lex == ZINDEX_LEX_FIRST ? 0 : index->count);
    if (side == ZINDEX_BEFORE)
        descend(index, &path, BEFORE_MEMBER, &key);
    else
        descend(index, &path, BEHIND_MEMBER, &key);
    return cursor_at(index, &path);
}

struct zindex_item *zindex_next(struct zindex_cursor *cursor)
{
    struct zindex_node *leaf = cursor->leaf;
    const union word *items;

    if (leaf == NULL)
        return NULL;
    if (cursor->slot == leaf->row_count) {
        if (leaf->next == NULL)
            return NULL;
        cursor->leaf = leaf = leaf->next;
        cursor->slot = 0;
    }
    items = column(leaf, ITEMS);
    if (cursor->slot + PREFETCH_ROWS < leaf->row_count)
        __builtin_prefetch(items[cursor->slot + PREFETCH_ROWS].item);
    cursor->rank++;
    return items[cursor->slot++].item;
}

struct zindex_item *zindex_previous(struct zindex_cursor *cursor)
{
    struct zindex_node *leaf = cursor->leaf;
    const union word *items;

    if (leaf == NULL)
        return NULL;
    if (cursor->slot == 0) {
        if (leaf->previous == NULL)
            return NULL;
        cursor->leaf = leaf = leaf->previous;
        cursor->slot = leaf->row_count;
    }
    items = column(leaf, ITEMS);
    if (cursor->slot > PREFETCH_ROWS)
        __builtin_prefetch(items[cursor->slot - 1 - PREFETCH_ROWS].item);
    cursor->rank--;
    return items[--cursor->slot].item;
}
