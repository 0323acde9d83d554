#include "data/zindex.h"

#include "base/mem.h"
#include "base/mem_move.h"
#include "data/zindex_priv.h"

#include <math.h>

/* --- rows --- */

static size_t node_bytes(unsigned column_count, unsigned capacity)
{
    return sizeof(struct zindex_node) + sizeof(union word) * column_count * capacity;
}

static uint32_t *count_of_kind(struct zindex *index, const struct zindex_node *node)
{
    return is_leaf(node) ? &index->leaf_count : &index->inner_count;
}

static struct zindex_node *node_create(struct zindex *index, unsigned column_count, unsigned capacity)
{
    struct zindex_node *node = mem_alloc(node_bytes(column_count, capacity));

    node->row_count = 0;
    node->capacity = (uint16_t)capacity;
    node->column_count = (uint16_t)column_count;
    node->previous = NULL;
    node->next = NULL;
    ++*count_of_kind(index, node);
    return node;
}

static void node_destroy(struct zindex *index, struct zindex_node *node)
{
    --*count_of_kind(index, node);
    mem_free(node);
}

static void copy_rows(struct zindex_node *to, unsigned to_slot, struct zindex_node *from, unsigned slot, unsigned count)
{
    for (unsigned i = 0; i < from->column_count; i++)
        memmove(column(to, i) + to_slot, column(from, i) + slot, count * sizeof(union word));
}

static void open_rows(struct zindex_node *node, unsigned slot, unsigned count)
{
    copy_rows(node, slot + count, node, slot, node->row_count - slot);
    node->row_count = (uint16_t)(node->row_count + count);
}

static void close_rows(struct zindex_node *node, unsigned slot, unsigned count)
{
    copy_rows(node, slot, node, slot + count, node->row_count - slot - count);
    node->row_count = (uint16_t)(node->row_count - count);
}

static void put_row(struct zindex_node *node, unsigned slot, const struct row *row)
{
    open_rows(node, slot, 1);
    for (unsigned i = 0; i < node->column_count; i++)
        column(node, i)[slot] = row->words[i];
}

/* The row for this node in its parent. */
static struct row row_naming(struct zindex_node *node, uint64_t item_count)
{
    return (struct row){{column(node, SCORES)[0], column(node, ITEMS)[0], {.child = node}, {.count = item_count}}};
}

/* Moves rows from one node to another; returns how many items that are. */
static uint64_t move_rows(struct zindex_node *to, unsigned to_slot, struct zindex_node *from, unsigned slot,
                          unsigned count)
{
    uint64_t items = count;

    if (!is_leaf(from)) {
        const union word *counts = column(from, COUNTS) + slot;

        items = 0;
        for (unsigned i = 0; i < count; i++)
            items += counts[i].count;
    }
    open_rows(to, to_slot, count);
    copy_rows(to, to_slot, from, slot, count);
    close_rows(from, slot, count);
    return items;
}

static void link_after(struct zindex_node *node, struct zindex_node *fresh)
{
    fresh->previous = node;
    fresh->next = node->next;
    if (node->next != NULL)
        node->next->previous = fresh;
    node->next = fresh;
}

static void link_before(struct zindex_node *node, struct zindex_node *fresh)
{
    fresh->next = node;
    fresh->previous = node->previous;
    if (node->previous != NULL)
        node->previous->next = fresh;
    node->previous = fresh;
}

static void unlink_node(struct zindex_node *node)
{
    if (node->previous != NULL)
        node->previous->next = node->next;
    if (node->next != NULL)
        node->next->previous = node->previous;
}

/* --- inserting --- */

enum growth { GROW_MIDDLE, GROW_END, GROW_START };

/* The first row of the node at `level` is another one, or names another item: the rows above learn of it. */
static void refresh_firsts(const struct zindex *index, const struct path *path, unsigned level)
{
    struct zindex_node *node = path->steps[level].node;
    union word score = column(node, SCORES)[0], item = column(node, ITEMS)[0];

    while (level < index->height) {
        const struct step *parent = &path->steps[++level];

        column(parent->node, SCORES)[parent->slot] = score;
        column(parent->node, ITEMS)[parent->slot] = item;
        if (parent->slot != 0)
            break;
    }
}

/* The steps in which a lonely leaf grows and shrinks: 6, 14, 30, 62, so that nodes are 128, 256, 512, 1024 bytes. */
static unsigned capacity_for(uint64_t row_count)
{
    unsigned capacity = ROOT_ROWS;

    while (capacity < row_count)
        capacity = capacity * 2 + 2;
    return capacity;
}

static void root_set_capacity(struct zindex *index, unsigned capacity)
{
    struct zindex_node *old = index->root, *root = node_create(index, old->column_count, capacity);

    root->row_count = old->row_count;
    copy_rows(root, 0, old, 0, old->row_count);
    node_destroy(index, old);
    index->root = root;
}

static void add_root(struct zindex *index, struct path *path)
{
    struct zindex_node *old = index->root, *root = node_create(index, INNER_COLUMNS, INNER_ROWS);
    struct row row = row_naming(old, index->count);

    assert(index->height < HEIGHT_MOST);
    put_row(root, 0, &row);
    index->root = root;
    index->height++;
    path->steps[index->height] = (struct step){root, 0};
}

/* The rows of two neighbours have moved: `items` more are below the left one (slot - 1), fewer below the right one. */
static void border_moved(struct zindex_node *parent, unsigned slot, uint64_t items)
{
    struct zindex_node *right = column(parent, CHILDREN)[slot].child;

    column(parent, COUNTS)[slot - 1].count += items;
    column(parent, COUNTS)[slot].count -= items;
    column(parent, SCORES)[slot] = column(right, SCORES)[0];
    column(parent, ITEMS)[slot] = column(right, ITEMS)[0];
}

/* Hands rows of a full node to a neighbour if one has room worth it. The path follows the place. */
static bool share_left(struct path *path, unsigned level)
{
    struct step *step = &path->steps[level], *parent = &path->steps[level + 1];
    struct zindex_node *left, *node = step->node;
    unsigned moved, old_count;

    if (parent->slot == 0)
        return false;
    left = column(parent->node, CHILDREN)[parent->slot - 1].child;
    old_count = left->row_count;
    moved = (node->row_count - old_count) / 2;
    if (moved < rows_most(node) / 16)
        return false;
    border_moved(parent->node, parent->slot, move_rows(left, old_count, node, 0, moved));
    if (step->slot <= moved) {
        *step = (struct step){left, old_count + step->slot};
        parent->slot--;
    } else {
        step->slot -= moved;
    }
    return true;
}

static bool share_right(struct path *path, unsigned level)
{
    struct step *step = &path->steps[level], *parent = &path->steps[level + 1];
    struct zindex_node *right, *node = step->node;
    unsigned moved, kept;

    if (parent->slot + 1U == parent->node->row_count)
        return false;
    right = column(parent->node, CHILDREN)[parent->slot + 1].child;
    moved = (node->row_count - right->row_count) / 2U;
    if (moved < rows_most(node) / 16)
        return false;
    kept = node->row_count - moved;
    border_moved(parent->node, parent->slot + 1, -move_rows(right, 0, node, kept, moved));
    if (step->slot > kept) {
        *step = (struct step){right, step->slot - kept};
        parent->slot++;
    }
    return true;
}

/* Makes room for one row at path->steps[level]. Where no neighbour helps a new node comes in, for which the parent
 * needs room first. In the middle of the index the child's row and the place beside it then stay in one node (a place
 * on a border belongs to the node before it), so that this node's count is the same before and after. At the ends the
 * new node begins empty, and its row names `item`, which the caller is about to put there. */
static void make_room(struct zindex *index, struct path *path, unsigned level, enum growth growth,
                      struct zindex_item *item)
{
    struct step *step = &path->steps[level], *parent = step + 1;
    struct zindex_node *node = step->node, *fresh;
    struct row row = {.words = {{.score = item->score}, {.item = item}, {.child = NULL}, {.count = 0}}};

    if (level == index->height) {
        if (node->capacity < rows_most(node)) {
            root_set_capacity(index, capacity_for(node->capacity + 1U));
            step->node = index->root;
            return;
        }
        add_root(index, path);
    }
    if (growth == GROW_MIDDLE && (share_left(path, level) || share_right(path, level)))
        return;
    parent->slot += growth != GROW_START;
    if (parent->node->row_count == parent->node->capacity)
        make_room(index, path, level + 1, growth, item);

    fresh = node_create(index, node->column_count, rows_most(node));
    row.words[CHILDREN].child = fresh;
    if (is_leaf(node))
        (growth == GROW_START ? link_before : link_after)(node, fresh);
    if (growth == GROW_MIDDLE) {
        unsigned kept = (node->row_count + 1U) / 2;

        row.words[SCORES] = column(node, SCORES)[kept];
        row.words[ITEMS] = column(node, ITEMS)[kept];
        row.words[COUNTS].count = move_rows(fresh, 0, node, kept, node->row_count - kept);
        column(parent->node, COUNTS)[parent->slot - 1].count -= row.words[COUNTS].count;
        put_row(parent->node, parent->slot, &row);
        if (step->slot <= kept)
            parent->slot--;
        else
            *step = (struct step){fresh, step->slot - kept};
    } else {
        put_row(parent->node, parent->slot, &row);
        *step = (struct step){fresh, 0};
    }
}

static enum growth growth_at(const struct step *step)
{
    if (step->slot == step->node->row_count && step->node->next == NULL)
        return GROW_END;
    return step->slot == 0 && step->node->previous == NULL ? GROW_START : GROW_MIDDLE;
}

void zindex_insert(struct zindex *index, struct zindex_item *item)
{
    struct row row = {.words = {{.score = item->score}, {.item = item}}};
    struct path path;
    struct step *leaf = &path.steps[0];

    assert(!isnan(item->score));
    if (index->root == NULL)
        index->root = node_create(index, LEAF_COLUMNS, ROOT_ROWS);
    zindex_descend(index, &path, item);
    debug_assert(leaf->slot == 0 || zindex_compare(column(leaf->node, ITEMS)[leaf->slot - 1].item, item) < 0);
    if (leaf->node->row_count == leaf->node->capacity)
        make_room(index, &path, 0, growth_at(leaf), item);
    put_row(leaf->node, leaf->slot, &row);
    for (unsigned level = 1; level <= index->height; level++)
        column(path.steps[level].node, COUNTS)[path.steps[level].slot].count++;
    index->count++;
    if (leaf->slot == 0)
        refresh_firsts(index, &path, 0);
}

/* --- removing --- */

/* Joins the node with its left neighbour in the same parent, if both fit. The row of the right node is removed. */
static bool join(struct zindex *index, struct zindex_node *parent, unsigned right_slot)
{
    struct zindex_node *left = column(parent, CHILDREN)[right_slot - 1].child;
    struct zindex_node *right = column(parent, CHILDREN)[right_slot].child;
    unsigned most = rows_most(left);

    if (left->row_count + right->row_count > most - most / 8)
        return false;
    column(parent, COUNTS)[right_slot - 1].count += move_rows(left, left->row_count, right, 0, right->row_count);
    if (is_leaf(right))
        unlink_node(right);
    node_destroy(index, right);
    close_rows(parent, right_slot, 1);
    return true;
}

static void shrink_root(struct zindex *index)
{
    while (index->height > 0 && index->root->row_count == 1) {
        struct zindex_node *old = index->root;

        index->root = column(old, CHILDREN)[0].child;
        index->height--;
        node_destroy(index, old);
    }
    if (index->root->row_count == 0) {
        assert(index->height == 0);
        node_destroy(index, index->root);
        index->root = NULL;
    } else if (index->height == 0 && index->root->row_count < index->root->capacity / 4) {
        root_set_capacity(index, capacity_for(index->root->row_count * 2U));
    }
}

/* Rows of the leaf are gone, counts and firsts above are right unless the leaf is empty: nodes that have become small
 * join others, empty ones go. */
static void shrink(struct zindex *index, struct path *path)
{
    for (unsigned level = 0; level < index->height; level++) {
        struct zindex_node *node = path->steps[level].node;
        const struct step *parent = &path->steps[level + 1];

        if (node->row_count == 0) {
            if (is_leaf(node))
                unlink_node(node);
            node_destroy(index, node);
            close_rows(parent->node, parent->slot, 1);
            if (parent->slot == 0 && parent->node->row_count != 0)
                refresh_firsts(index, path, level + 1);
        } else if (node->row_count >= rows_most(node) / 2U ||
                   !((parent->slot > 0 && join(index, parent->node, parent->slot)) ||
                     (parent->slot + 1U < parent->node->row_count && join(index, parent->node, parent->slot + 1)))) {
            break;
        }
    }
    shrink_root(index);
}

static void remove_rows(struct zindex *index, struct path *path, unsigned count)
{
    const struct step *leaf = &path->steps[0];

    close_rows(leaf->node, leaf->slot, count);
    for (unsigned level = 1; level <= index->height; level++)
        column(path->steps[level].node, COUNTS)[path->steps[level].slot].count -= count;
    index->count -= count;
    if (leaf->slot == 0 && leaf->node->row_count != 0)
        refresh_firsts(index, path, 0);
    shrink(index, path);
}

void zindex_remove(struct zindex *index, struct zindex_item *item)
{
    struct path path;

    zindex_find(index, &path, item);
    remove_rows(index, &path, 1);
}

void zindex_remove_range(struct zindex *index, uint64_t first, uint64_t end, zindex_item_fn take_item, void *context)
{
    if (end > index->count)
        end = index->count;
    while (first < end) {
        struct path path;
        const struct step *leaf = &path.steps[0];
        struct zindex_item *taken[LEAF_ROWS];
        unsigned count;

        zindex_find_rank(index, &path, first);
        count = (unsigned)MIN(leaf->node->row_count - leaf->slot, end - first);
        memcpy(taken, column(leaf->node, ITEMS) + leaf->slot, count * sizeof(*taken));
        remove_rows(index, &path, count);
        end -= count;
        for (unsigned i = 0; i < count; i++)
            take_item(taken[i], context);
    }
}

static void clear_node(struct zindex *index, struct zindex_node *node, zindex_item_fn take_item, void *context)
{
    for (unsigned i = 0; i < node->row_count; i++) {
        if (!is_leaf(node))
            clear_node(index, column(node, CHILDREN)[i].child, take_item, context);
        else if (take_item != NULL)
            take_item(column(node, ITEMS)[i].item, context);
    }
    node_destroy(index, node);
}

void zindex_clear(struct zindex *index, zindex_item_fn take_item, void *context)
{
    if (index->root != NULL)
        clear_node(index, index->root, take_item, context);
    assert(index->leaf_count == 0);
    assert(index->inner_count == 0);
    *index = (struct zindex){0};
}

/* --- changing --- */

static const struct zindex_item *item_before(const struct step *leaf)
{
    struct zindex_node *previous = leaf->node->previous;

    if (leaf->slot > 0)
        return column(leaf->node, ITEMS)[leaf->slot - 1].item;
    return previous != NULL ? column(previous, ITEMS)[previous->row_count - 1].item : NULL;
}

static const struct zindex_item *item_after(const struct step *leaf)
{
    if (leaf->slot + 1U < leaf->node->row_count)
        return column(leaf->node, ITEMS)[leaf->slot + 1].item;
    return leaf->node->next != NULL ? column(leaf->node->next, ITEMS)[0].item : NULL;
}

static bool stays(const struct step *leaf, const struct key *key)
{
    const struct zindex_item *before = item_before(leaf), *after = item_after(leaf);

    return (before == NULL || precedes_item(before, key, false)) && (after == NULL || !precedes_item(after, key, true));
}

void zindex_set_score(struct zindex *index, struct zindex_item *item, double score)
{
    struct key key = {score, zindex_item_member(item)};
    struct path path;
    struct step leaf;

    assert(!isnan(score));
    zindex_find(index, &path, item);
    leaf = path.steps[0];
    if (!stays(&leaf, &key)) {
        remove_rows(index, &path, 1);
        item->score = score;
        zindex_insert(index, item);
        return;
    }
    item->score = score;
    column(leaf.node, SCORES)[leaf.slot].score = score;
    if (leaf.slot == 0)
        refresh_firsts(index, &path, 0);
}

void zindex_replace(struct zindex *index, const struct zindex_item *item, struct zindex_item *by)
{
    struct path path;

    assert(zindex_compare(item, by) == 0);
    zindex_find(index, &path, item);
    column(path.steps[0].node, ITEMS)[path.steps[0].slot].item = by;
    if (path.steps[0].slot == 0)
        refresh_firsts(index, &path, 0);
}

/* --- moving --- */

static void relocate_node(struct zindex *index, struct path *path, unsigned level, struct mem_mover *mover)
{
    struct step *step = &path->steps[level];

    step->node = mem_move(mover, step->node, 0);
    if (level == index->height)
        index->root = step->node;
    else
        column(path->steps[level + 1].node, CHILDREN)[path->steps[level + 1].slot].child = step->node;
    if (step->node->previous != NULL)
        step->node->previous->next = step->node;
    if (step->node->next != NULL)
        step->node->next->previous = step->node;
}

uint64_t zindex_relocate(struct zindex *index, uint64_t first, uint64_t most, struct mem_mover *mover,
                         zindex_relocate_fn relocate, void *context)
{
    while (first < index->count && most != 0) {
        struct path path;
        const struct step *leaf = &path.steps[0];
        unsigned slot, count;

        zindex_find_rank(index, &path, first);
        slot = leaf->slot;
        count = leaf->node->row_count - slot;
        for (unsigned i = slot; i < slot + count; i++) {
            union word *item = &column(leaf->node, ITEMS)[i];

            item->item = relocate(item->item, context);
        }
        if (slot == 0) {
            unsigned level = 0;

            refresh_firsts(index, &path, 0);
            do /* the node, and those whose first it is */
                relocate_node(index, &path, level, mover);
            while (++level <= index->height && path.steps[level].slot == 0);
        }
        first += count;
        most -= MIN(most, count);
    }
    return first < index->count ? first : 0;
}

/* --- building --- */

/* Rows of one level: node i of node_count gets its even share. */
static uint64_t share_begin(uint64_t row_count, uint64_t node_count, uint64_t i)
{
    return row_count / node_count * i + MIN(i, row_count % node_count);
}

static void build_leaves(struct zindex *index, struct row *rows, uint64_t node_count, struct zindex_item *const *items,
                         uint64_t count)
{
    struct zindex_node *last = NULL;

    for (uint64_t i = 0; i < node_count; i++) {
        uint64_t begin = share_begin(count, node_count, i), end = share_begin(count, node_count, i + 1);
        struct zindex_node *node = node_create(index, LEAF_COLUMNS, LEAF_ROWS);

        for (uint64_t k = begin; k < end; k++) {
            debug_assert(k == 0 || zindex_compare(items[k - 1], items[k]) < 0);
            column(node, SCORES)[k - begin].score = items[k]->score;
            column(node, ITEMS)[k - begin].item = items[k];
        }
        node->row_count = (uint16_t)(end - begin);
        if (last != NULL)
            link_after(last, node);
        last = node;
        rows[i] = row_naming(node, end - begin);
    }
}

/* Puts the rows of one level into nodes, whose own rows take the places at the beginning of the array. */
static uint64_t build_level(struct zindex *index, struct row *rows, uint64_t row_count)
{
    uint64_t node_count = (row_count + INNER_ROWS - 1) / INNER_ROWS;

    for (uint64_t i = 0; i < node_count; i++) {
        uint64_t begin = share_begin(row_count, node_count, i), end = share_begin(row_count, node_count, i + 1);
        struct zindex_node *node = node_create(index, INNER_COLUMNS, INNER_ROWS);
        uint64_t items = 0;

        for (uint64_t k = begin; k < end; k++) {
            put_row(node, node->row_count, &rows[k]);
            items += rows[k].words[COUNTS].count;
        }
        rows[i] = row_naming(node, items);
    }
    return node_count;
}

void zindex_build(struct zindex *index, struct zindex_item *const *items, uint64_t count)
{
    uint64_t node_count = (count + LEAF_ROWS - 1) / LEAF_ROWS;
    struct row *rows;

    assert(index->root == NULL);
    if (count == 0)
        return;
    rows = mem_alloc(node_count * sizeof(*rows));
    build_leaves(index, rows, node_count, items, count);
    while (node_count > 1) {
        node_count = build_level(index, rows, node_count);
        index->height++;
    }
    index->root = rows[0].words[CHILDREN].child;
    index->count = count;
    if (index->height == 0)
        root_set_capacity(index, capacity_for(count));
    mem_free(rows);
}

/* --- looking at it --- */

uint64_t zindex_memory_bytes(const struct zindex *index)
{
    if (index->height == 0)
        return mem_usable(index->root);
    return index->leaf_count * mem_good_size(node_bytes(LEAF_COLUMNS, LEAF_ROWS)) +
           index->inner_count * mem_good_size(node_bytes(INNER_COLUMNS, INNER_ROWS));
}

struct validation {
    const struct zindex_node *last_leaf;
    uint32_t leaf_count;
    uint32_t inner_count;
};

static void validate_rows(const struct zindex *index, struct zindex_node *node)
{
    const union word *scores = column(node, SCORES), *items = column(node, ITEMS);

    assert(node->row_count >= 1);
    assert(node->row_count <= node->capacity);
    assert(node->capacity == rows_most(node) || (node == index->root && node->capacity < rows_most(node)));
    for (unsigned i = 0; i < node->row_count; i++) {
        assert(scores[i].score == items[i].item->score);
        assert(i == 0 || zindex_compare(items[i - 1].item, items[i].item) < 0);
    }
}

static uint64_t validate_node(const struct zindex *index, struct zindex_node *node, unsigned level,
                              struct validation *validation)
{
    uint64_t items = 0;

    assert(is_leaf(node) == (level == 0));
    validate_rows(index, node);
    if (level == 0) {
        validation->leaf_count++;
        assert(node->previous == validation->last_leaf);
        assert(node->previous == NULL || node->previous->next == node);
        assert(node->previous == NULL ||
               zindex_compare(column(node->previous, ITEMS)[node->previous->row_count - 1].item,
                              column(node, ITEMS)[0].item) < 0);
        validation->last_leaf = node;
        return node->row_count;
    }
    validation->inner_count++;
    for (unsigned i = 0; i < node->row_count; i++) {
        struct zindex_node *child = column(node, CHILDREN)[i].child;

        assert(column(node, ITEMS)[i].item == column(child, ITEMS)[0].item);
        assert(column(node, COUNTS)[i].count == validate_node(index, child, level - 1, validation));
        items += column(node, COUNTS)[i].count;
    }
    return items;
}

void zindex_validate(const struct zindex *index)
{
    struct validation validation = {NULL, 0, 0};

    if (index->root == NULL) {
        assert(index->count == 0);
        assert(index->height == 0);
        assert(index->leaf_count == 0);
        assert(index->inner_count == 0);
        return;
    }
    assert(index->height == 0 || index->root->row_count >= 2);
    assert(validate_node(index, index->root, index->height, &validation) == index->count);
    assert(validation.last_leaf->next == NULL);
    assert(validation.leaf_count == index->leaf_count);
    assert(validation.inner_count == index->inner_count);
}
