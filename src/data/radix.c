/* A node is one piece of memory of exactly the necessary size:
 *
 *     head | value (if it has one) | child ... | byte of each child, ascending | prefix
 *
 * The key of a node is the key of its parent, the byte of the child, and the prefix. A node that changes its shape is
 * reallocated: it is small, and only its parent's pointer (or the root) refers to it.
 *
 * Invariants
 *  1. A node without a value has at least two children: so the tree is no larger than necessary, and every way down
 *     ends at a value.
 *  2. The bytes of the children ascend.
 *  3. count is the number of nodes with a value, node_count of all nodes, bytes the sum of their memory. */
#include "data/radix.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/mem.h"
#include "base/mem_move.h"

struct radix_node {
    uint32_t prefix_size;
    uint16_t child_count;
    uint16_t has_value; /* 0 or 1 */
    void *slots[];
};

struct radix {
    struct radix_node *root; /* NULL: empty */
    uint64_t count;
    uint64_t bytes;
    uint64_t node_count;
};

/* --- nodes --- */

static struct radix_node **children(const struct radix_node *node)
{
    return (struct radix_node **)(void *)(uintptr_t)(node->slots + node->has_value);
}

static uint8_t *child_bytes(const struct radix_node *node)
{
    return (uint8_t *)(children(node) + node->child_count);
}

static char *node_prefix(const struct radix_node *node)
{
    return (char *)child_bytes(node) + node->child_count;
}

static struct radix_node *node_create(struct radix *tree, size_t prefix_size, bool has_value, unsigned child_count)
{
    size_t size = sizeof(struct radix_node) + (has_value + (size_t)child_count) * sizeof(void *) + child_count;
    struct radix_node *node;

    assert(prefix_size < UINT32_MAX);
    assert(child_count <= 256);
    node = mem_alloc(size + prefix_size);
    node->prefix_size = (uint32_t)prefix_size;
    node->child_count = (uint16_t)child_count;
    node->has_value = has_value;
    tree->bytes += mem_usable(node);
    tree->node_count++;
    return node;
}

static void node_free(struct radix *tree, struct radix_node *node)
{
    tree->bytes -= mem_usable(node);
    tree->node_count--;
    mem_free(node);
}

static struct radix_node *node_create_leaf(struct radix *tree, struct slice prefix, void *value)
{
    struct radix_node *node = node_create(tree, prefix.size, true, 0);

    node->slots[0] = value;
    if (prefix.size != 0)
        memcpy(node_prefix(node), prefix.data, prefix.size);
    return node;
}

static void copy_children(struct radix_node *to, unsigned to_index, const struct radix_node *from, unsigned from_index,
                          unsigned count)
{
    if (count != 0) {
        memcpy(children(to) + to_index, children(from) + from_index, count * sizeof(void *));
        memcpy(child_bytes(to) + to_index, child_bytes(from) + from_index, count);
    }
}

/* The same node with a value, or without. */
static void node_set_has_value(struct radix *tree, struct radix_node **link, bool has_value)
{
    struct radix_node *old = *link, *node = node_create(tree, old->prefix_size, has_value, old->child_count);

    copy_children(node, 0, old, 0, old->child_count);
    memcpy(node_prefix(node), node_prefix(old), old->prefix_size);
    *link = node;
    node_free(tree, old);
}

static void node_add_child(struct radix *tree, struct radix_node **link, unsigned index, uint8_t byte,
                           struct radix_node *child)
{
    struct radix_node *old = *link;
    struct radix_node *node = node_create(tree, old->prefix_size, old->has_value, old->child_count + 1U);

    if (old->has_value)
        node->slots[0] = old->slots[0];
    copy_children(node, 0, old, 0, index);
    children(node)[index] = child;
    child_bytes(node)[index] = byte;
    copy_children(node, index + 1, old, index, old->child_count - index);
    memcpy(node_prefix(node), node_prefix(old), old->prefix_size);
    *link = node;
    node_free(tree, old);
}

static void node_remove_child(struct radix *tree, struct radix_node **link, unsigned index)
{
    struct radix_node *old = *link;
    struct radix_node *node = node_create(tree, old->prefix_size, old->has_value, old->child_count - 1U);

    if (old->has_value)
        node->slots[0] = old->slots[0];
    copy_children(node, 0, old, 0, index);
    copy_children(node, index, old, index + 1, old->child_count - index - 1U);
    memcpy(node_prefix(node), node_prefix(old), old->prefix_size);
    *link = node;
    node_free(tree, old);
}

/* Puts a node between: it takes the first `kept` bytes of the prefix, the byte behind them leads to the old node. */
static void node_split(struct radix *tree, struct radix_node **link, size_t kept)
{
    struct radix_node *old = *link, *upper = node_create(tree, kept, false, 1), *lower;

    lower = node_create(tree, old->prefix_size - kept - 1, old->has_value, old->child_count);
    if (old->has_value)
        lower->slots[0] = old->slots[0];
    copy_children(lower, 0, old, 0, old->child_count);
    memcpy(node_prefix(lower), node_prefix(old) + kept + 1, lower->prefix_size);
    children(upper)[0] = lower;
    child_bytes(upper)[0] = (uint8_t)node_prefix(old)[kept];
    memcpy(node_prefix(upper), node_prefix(old), kept);
    *link = upper;
    node_free(tree, old);
}

/* The reverse, when a node has become a mere stop on the way to its only child (invariant 1). */
static void node_join_if_idle(struct radix *tree, struct radix_node **link)
{
    struct radix_node *upper = *link, *lower, *node;
    char *prefix;

    if (upper->has_value || upper->child_count != 1)
        return;
    lower = children(upper)[0];
    node = node_create(tree, (size_t)upper->prefix_size + 1 + lower->prefix_size, lower->has_value, lower->child_count);
    if (lower->has_value)
        node->slots[0] = lower->slots[0];
    copy_children(node, 0, lower, 0, lower->child_count);
    prefix = node_prefix(node);
    memcpy(prefix, node_prefix(upper), upper->prefix_size);
    prefix[upper->prefix_size] = (char)child_bytes(upper)[0];
    memcpy(prefix + upper->prefix_size + 1, node_prefix(lower), lower->prefix_size);
    *link = node;
    node_free(tree, upper);
    node_free(tree, lower);
}

/* The first child whose byte is not below this one; the count of children if there is none. */
static unsigned child_at_least(const struct radix_node *node, uint8_t byte)
{
    const uint8_t *bytes = child_bytes(node);
    unsigned low = 0, high = node->child_count;

    while (low < high) {
        unsigned middle = (low + high) / 2;

        if (bytes[middle] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool child_is(const struct radix_node *node, unsigned index, uint8_t byte)
{
    return index < node->child_count && child_bytes(node)[index] == byte;
}

static size_t common_size(const struct radix_node *node, struct slice rest)
{
    const char *prefix = node_prefix(node);
    size_t most = MIN(node->prefix_size, rest.size), common = 0;

    while (common < most && prefix[common] == rest.data[common])
        common++;
    return common;
}

/* --- the tree --- */

struct radix *radix_create(void)
{
    struct radix *tree = mem_alloc_zero(sizeof(*tree));

    tree->bytes = mem_usable(tree);
    return tree;
}

/* Goes down to the last child, and up again when there is none left. On the way the place of the child taken holds the
 * way back, so that no stack is needed. */
void radix_destroy(struct radix **tree, void (*free_value)(void *value))
{
    struct radix *gone = *tree;
    struct radix_node *node, *up = NULL;

    *tree = NULL;
    if (gone == NULL)
        return;
    node = gone->root;
    while (node != NULL) {
        if (node->child_count != 0) {
            struct radix_node **place = &children(node)[--node->child_count];
            struct radix_node *child = *place;

            *place = up;
            up = node;
            node = child;
        } else {
            if (node->has_value && free_value != NULL)
                free_value(node->slots[0]);
            node_free(gone, node);
            node = up;
            up = node != NULL ? children(node)[node->child_count] : NULL;
        }
    }
    assert(gone->bytes == mem_usable(gone));
    mem_free(gone);
}

bool radix_find(const struct radix *tree, struct slice key, void **value)
{
    const struct radix_node *node = tree->root;

    while (node != NULL && key.size >= node->prefix_size &&
           memcmp(node_prefix(node), key.size != 0 ? key.data : "", node->prefix_size) == 0) {
        unsigned index;

        if (key.size == node->prefix_size) {
            if (node->has_value && value != NULL)
                *value = node->slots[0];
            return node->has_value;
        }
        key = slice_skip(key, node->prefix_size);
        index = child_at_least(node, (uint8_t)key.data[0]);
        if (!child_is(node, index, (uint8_t)key.data[0]))
            return false;
        key = slice_skip(key, 1);
        node = children(node)[index];
    }
    return false;
}

/* Returns the node's child on the way to the key, which exists; *key becomes the rest of the key in the child. */
static unsigned step_down(const struct radix_node *node, struct slice *key)
{
    unsigned index;

    *key = slice_skip(*key, node->prefix_size);
    index = child_at_least(node, (uint8_t)key->data[0]);
    *key = slice_skip(*key, 1);
    return index;
}

void radix_relocate(struct radix *tree, struct slice key, struct mem_mover *mover)
{
    struct radix_node **link = &tree->root, **first = link;
    struct slice rest = key, first_rest = key;

    assert(radix_find(tree, key, NULL));
    while (rest.size > (*link)->prefix_size) {
        bool has_value = (*link)->has_value != 0;
        unsigned index = step_down(*link, &rest);

        link = &children(*link)[index];
        if (has_value || index != 0) { /* the nodes above belong to an earlier key */
            first = link;
            first_rest = rest;
        }
    }
    for (link = first, rest = first_rest;; link = &children(*link)[step_down(*link, &rest)]) {
        tree->bytes -= mem_usable(*link);
        *link = mem_move(mover, *link, 0);
        tree->bytes += mem_usable(*link);
        if (rest.size == (*link)->prefix_size)
            break;
    }
}

/* The key ends at this node. */
static bool set_here(struct radix *tree, struct radix_node **link, void *value, void **old)
{
    bool is_new = !(*link)->has_value;

    if (is_new) {
        node_set_has_value(tree, link, true);
        tree->count++;
    } else if (old != NULL) {
        *old = (*link)->slots[0];
    }
    (*link)->slots[0] = value;
    return is_new;
}

bool radix_set(struct radix *tree, struct slice key, void *value, void **old)
{
    struct radix_node **link = &tree->root;

    while (*link != NULL) {
        size_t common = common_size(*link, key);
        unsigned index;
        uint8_t byte;

        if (common < (*link)->prefix_size)
            node_split(tree, link, common);
        if (common == key.size)
            return set_here(tree, link, value, old);
        byte = (uint8_t)key.data[common];
        key = slice_skip(key, common + 1);
        index = child_at_least(*link, byte);
        if (!child_is(*link, index, byte)) {
            node_add_child(tree, link, index, byte, node_create_leaf(tree, key, value));
            tree->count++;
            return true;
        }
        link = &children(*link)[index];
    }
    *link = node_create_leaf(tree, key, value);
    tree->count++;
    return true;
}

/* Takes the value out of a node, whose parent (NULL: it is the root) leads to it by its child `index`. */
static void remove_here(struct radix *tree, struct radix_node **link, struct radix_node **parent, unsigned index)
{
    struct radix_node *node = *link;

    tree->count--;
    if (node->child_count != 0) {
        node_set_has_value(tree, link, false);
        node_join_if_idle(tree, link);
        return;
    }
    if (parent == NULL) {
        tree->root = NULL;
    } else {
        node_remove_child(tree, parent, index);
        node_join_if_idle(tree, parent);
    }
    node_free(tree, node);
}

bool radix_remove(struct radix *tree, struct slice key, void **old)
{
    struct radix_node **link = &tree->root, **parent = NULL;
    unsigned index = 0;

    while (*link != NULL && common_size(*link, key) == (*link)->prefix_size) {
        struct radix_node *node = *link;

        if (key.size == node->prefix_size) {
            if (!node->has_value)
                return false;
            if (old != NULL)
                *old = node->slots[0];
            remove_here(tree, link, parent, index);
            return true;
        }
        key = slice_skip(key, node->prefix_size);
        index = child_at_least(node, (uint8_t)key.data[0]);
        if (!child_is(node, index, (uint8_t)key.data[0]))
            return false;
        key = slice_skip(key, 1);
        parent = link;
        link = &children(node)[index];
    }
    return false;
}

uint64_t radix_count(const struct radix *tree)
{
    return tree->count;
}

uint64_t radix_node_count(const struct radix *tree)
{
    return tree->node_count;
}

uint64_t radix_memory_bytes(const struct radix *tree)
{
    return tree->bytes;
}

/* --- iterator --- */

/* Where a search ended: at the smallest or largest key under `node`, or at the node itself. The key begins with `kept`
 * bytes of the key sought; those of the node come behind them, unless it is the node itself. */
struct place {
    const struct radix_node *node; /* NULL: nowhere */
    size_t kept;
    int byte; /* the byte that leads to the node; -1: it is among the kept ones */
    enum { PLACE_SMALLEST, PLACE_LARGEST, PLACE_ITSELF } which;
};

static struct place child_place(const struct radix_node *node, unsigned index, size_t kept, bool largest)
{
    return (struct place){children(node)[index], kept, child_bytes(node)[index],
                          largest ? PLACE_LARGEST : PLACE_SMALLEST};
}

static struct place find_upwards(const struct radix_node *node, struct slice key, bool may_equal)
{
    struct place best = {NULL, 0, -1, PLACE_SMALLEST};
    size_t depth = 0;

    while (node != NULL) {
        struct slice rest = slice_skip(key, depth);
        size_t common = common_size(node, rest);
        unsigned index;
        uint8_t byte;

        if (common < node->prefix_size) { /* everything here is above the key, or below it */
            if (common == rest.size || (uint8_t)rest.data[common] < (uint8_t)node_prefix(node)[common])
                best = (struct place){node, depth, -1, PLACE_SMALLEST};
            return best;
        }
        depth += common;
        if (depth == key.size) {
            if (node->has_value && may_equal)
                best = (struct place){node, depth, -1, PLACE_ITSELF};
            else if (node->child_count != 0)
                best = child_place(node, 0, depth, false);
            return best;
        }
        byte = (uint8_t)key.data[depth];
        index = child_at_least(node, byte);
        if (!child_is(node, index, byte))
            return index < node->child_count ? child_place(node, index, depth, false) : best;
        if (index + 1 < node->child_count)
            best = child_place(node, index + 1, depth, false);
        node = children(node)[index];
        depth++;
    }
    return best;
}

static struct place find_downwards(const struct radix_node *node, struct slice key, bool may_equal)
{
    struct place best = {NULL, 0, -1, PLACE_LARGEST};
    size_t depth = 0;

    while (node != NULL) {
        struct slice rest = slice_skip(key, depth);
        size_t common = common_size(node, rest);
        unsigned index;
        uint8_t byte;

        if (common < node->prefix_size) {
            if (common < rest.size && (uint8_t)rest.data[common] > (uint8_t)node_prefix(node)[common])
                best = (struct place){node, depth, -1, PLACE_LARGEST};
            return best;
        }
        depth += common;
        if (node->has_value && (depth < key.size || may_equal))
            best = (struct place){node, depth, -1, PLACE_ITSELF};
        if (depth == key.size)
            return best;
        byte = (uint8_t)key.data[depth];
        index = child_at_least(node, byte);
        if (index > 0)
            best = child_place(node, index - 1, depth, true);
        if (!child_is(node, index, byte))
            return best;
        node = children(node)[index];
        depth++;
    }
    return best;
}

static void iter_append(struct radix_iter *iter, const void *bytes, size_t size)
{
    if (iter->key_capacity - iter->key_size < size) {
        size_t capacity = MAX(iter->key_size + size, iter->key_capacity * 2);
        char *key = mem_alloc(capacity);

        memcpy(key, iter->key, iter->key_size);
        if (iter->key != iter->room)
            mem_free(iter->key);
        iter->key = key;
        iter->key_capacity = capacity;
    }
    if (size != 0)
        memmove(iter->key + iter->key_size, bytes, size);
    iter->key_size += size;
}

/* Goes to the place, and writes the key down on the way. */
static bool iter_go(struct radix_iter *iter, const struct place *place, struct slice sought)
{
    const struct radix_node *node = place->node;

    iter->valid = node != NULL;
    if (node == NULL)
        return false;
    if (sought.data == iter->key) {
        iter->key_size = place->kept;
    } else {
        iter->key_size = 0;
        iter_append(iter, sought.data, place->kept);
    }
    if (place->byte >= 0)
        iter_append(iter, &(uint8_t){(uint8_t)place->byte}, 1);
    if (place->which != PLACE_ITSELF)
        iter_append(iter, node_prefix(node), node->prefix_size);
    while ((place->which == PLACE_SMALLEST && !node->has_value) ||
           (place->which == PLACE_LARGEST && node->child_count != 0)) {
        unsigned index = place->which == PLACE_SMALLEST ? 0 : node->child_count - 1U;

        iter_append(iter, &child_bytes(node)[index], 1);
        node = children(node)[index];
        iter_append(iter, node_prefix(node), node->prefix_size);
    }
    iter->value = node->slots[0];
    return true;
}

void radix_iter_init(struct radix_iter *iter, const struct radix *tree)
{
    iter->tree = tree;
    iter->key = iter->room;
    iter->key_size = 0;
    iter->key_capacity = sizeof(iter->room);
    iter->value = NULL;
    iter->valid = false;
}

void radix_iter_fini(struct radix_iter *iter)
{
    if (iter->key != iter->room)
        mem_free(iter->key);
    radix_iter_init(iter, NULL);
}

bool radix_seek(struct radix_iter *iter, enum radix_seek how, struct slice key)
{
    const struct radix_node *root = iter->tree->root;
    struct place place = {root, 0, -1, how == RADIX_LAST ? PLACE_LARGEST : PLACE_SMALLEST};

    if (key.data == NULL)
        key = SLICE("");
    switch (how) {
    case RADIX_FIRST:
    case RADIX_LAST:
        break;
    case RADIX_AT_LEAST:
    case RADIX_ABOVE:
        place = find_upwards(root, key, how == RADIX_AT_LEAST);
        break;
    case RADIX_AT_MOST:
    case RADIX_BELOW:
        place = find_downwards(root, key, how == RADIX_AT_MOST);
        break;
    case RADIX_EQUAL:
        place = find_upwards(root, key, true);
        if (place.which != PLACE_ITSELF)
            place.node = NULL;
        break;
    }
    return iter_go(iter, &place, key);
}

bool radix_next(struct radix_iter *iter)
{
    return iter->valid && radix_seek(iter, RADIX_ABOVE, radix_iter_key(iter));
}

bool radix_previous(struct radix_iter *iter)
{
    return iter->valid && radix_seek(iter, RADIX_BELOW, radix_iter_key(iter));
}

/* --- validation --- */

static void node_validate(const struct radix_node *node)
{
    const uint8_t *bytes = child_bytes(node);

    assert(node->has_value <= 1);
    assert(node->has_value || node->child_count >= 2);
    for (unsigned i = 1; i < node->child_count; i++)
        assert(bytes[i - 1] < bytes[i]);
}

void radix_validate(const struct radix *tree)
{
    struct {
        const struct radix_node **items;
        size_t count, capacity;
    } open = {0};
    uint64_t count = 0, bytes = mem_usable(tree);

    if (tree->root != NULL)
        *ARRAY_PUSH(&open) = tree->root;
    while (open.count != 0) {
        const struct radix_node *node = open.items[--open.count];

        node_validate(node);
        count += node->has_value;
        bytes += mem_usable(node);
        for (unsigned i = 0; i < node->child_count; i++)
            *ARRAY_PUSH(&open) = children(node)[i];
    }
    ARRAY_FINI(&open);
    assert(count == tree->count);
    assert(bytes == tree->bytes);
}
