#include "data/nested.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/nested_priv.h"

#include <string.h>

enum { REPLACED_EFFORT = 64 }; /* what is replaced and takes less to free is freed at once */

/* ------------------------------------------------------------------------------------------------------- paths -- */

enum nested_path nested_path_check(struct slice path)
{
    unsigned depth = 0;

    do {
        if (nested_path_step(&path).size == 0)
            return NESTED_PATH_EMPTY_COMPONENT;
        if (++depth > NESTED_DEPTH_MOST)
            return NESTED_PATH_TOO_DEEP;
    } while (path.data != NULL);
    return NESTED_PATH_GOOD;
}

struct slice nested_path_step(struct slice *path)
{
    const char *dot = path->size != 0 ? memchr(path->data, '.', path->size) : NULL;
    struct slice component = *path;

    if (dot == NULL) {
        *path = SLICE_EMPTY;
        return component;
    }
    component.size = (size_t)(dot - path->data);
    *path = slice_make(dot + 1, path->size - component.size - 1);
    return component;
}

/* ------------------------------------------------------------------------------------------------------- nodes -- */

static struct nested_child *child_of(const struct nested *node)
{
    return container_of((struct nested *)(uintptr_t)node, struct nested_child, node);
}

struct slice nested_child_name(const struct nested *node)
{
    const struct nested_child *child = child_of(node);

    return slice_make(child->name, child->name_size);
}

static uint64_t child_hash(const void *item)
{
    const struct nested_child *child = item;

    return hash_bytes(child->name, child->name_size);
}

static bool child_matches(const void *item, const void *key)
{
    const struct nested_child *child = item;

    return slice_equal(slice_make(child->name, child->name_size), *(const struct slice *)key);
}

static struct nested *child_find(const struct nested *node, struct slice name)
{
    struct nested_child *child = NULL;

    if (node->kind == NESTED_TREE)
        child = table_find(&node->children, hash_bytes(name.data, name.size), child_matches, &name);
    return child != NULL ? &child->node : NULL;
}

/* An empty tree. */
static struct nested *child_add(struct nested *tree, struct slice name, uint64_t born)
{
    struct nested_child *child = mem_alloc_zero(sizeof(*child) + name.size);

    child->node.born = born;
    child->node.effort = 1;
    child->name_size = name.size;
    memcpy(child->name, name.data, name.size);
    table_insert(&tree->children, child_hash(child), child, child_hash);
    return &child->node;
}

static void child_free(void *item, void *context)
{
    struct nested_child *child = item;

    (void)context;
    nested_free_contents(&child->node);
    mem_free(child);
}

void nested_free_contents(struct nested *node)
{
    if (node->kind == NESTED_TREE) {
        table_clear(&node->children, child_free, NULL);
        return;
    }
    for (uint32_t i = 0; i < node->texts.count; i++)
        mem_free((void *)(uintptr_t)node->texts.items[i].data);
    mem_free(node->texts.items);
}

static void make_empty_tree(struct nested *node)
{
    node->kind = NESTED_TREE;
    node->effort = 1;
    node->children = (struct table){0};
}

void nested_move_contents(struct nested *to, struct nested *from)
{
    to->kind = from->kind;
    to->born = from->born;
    to->effort = from->effort;
    if (from->kind == NESTED_TREE)
        table_move(&to->children, &from->children);
    else
        to->texts = from->texts;
    make_empty_tree(from);
}

/* An empty tree becomes a text or a list. Its effort stays. */
static void fill(struct nested *node, const struct slice *values, uint32_t value_count)
{
    assert(node->kind == NESTED_TREE && table_count(&node->children) == 0);
    node->kind = value_count == 1 ? NESTED_TEXT : NESTED_LIST;
    node->texts.count = value_count;
    node->texts.items = mem_alloc(value_count * sizeof(*node->texts.items));
    for (uint32_t i = 0; i < value_count; i++)
        node->texts.items[i] = slice_make(mem_copy(values[i].data, values[i].size), values[i].size);
}

/* ------------------------------------------------------------------------------------------------------ values -- */

static struct nested_tree *tree_of(struct value value)
{
    return value.data;
}

static struct nested_tree *tree_create(void)
{
    struct nested_tree *tree = mem_alloc_zero(sizeof(*tree));

    tree->root.effort = 1;
    return tree;
}

static void copy_contents(struct nested *to, const struct nested *from);

static void copy_child(void *item, void *context)
{
    const struct nested_child *from = item;

    copy_contents(child_add(context, slice_make(from->name, from->name_size), 0), &from->node);
}

static void copy_contents(struct nested *to, const struct nested *from)
{
    to->effort = from->effort;
    if (from->kind == NESTED_TREE)
        table_each(&from->children, copy_child, to);
    else
        fill(to, from->texts.items, from->texts.count);
}

/* Each child is measured, or some, in the order of the table. */
struct measured {
    uint64_t most, count, bytes;
    uint64_t samples; /* of each child */
};

static void measure_child(void *item, void *context)
{
    const struct nested_child *child = item;
    struct measured *measured = context;

    if (measured->count == measured->most)
        return;
    measured->count++;
    measured->bytes += mem_usable(child) + nested_contents_bytes(&child->node, measured->samples);
}

static uint64_t scale(uint64_t bytes, uint64_t count, uint64_t total)
{
    return count == total ? bytes : (uint64_t)((double)bytes / (double)count * (double)total);
}

static uint64_t children_bytes(const struct nested *node, uint64_t samples)
{
    const uint64_t total = table_count(&node->children);
    /* One child of each below: so the work does not multiply with the depth. */
    struct measured measured = {.most = samples == 0 ? total : MIN(samples, total), .samples = samples != 0};
    uint64_t position = 0;

    if (total == 0)
        return 0;
    do
        position = table_scan(&node->children, position, measured.most - measured.count, measure_child, &measured);
    while (position != 0 && measured.count < measured.most);
    return table_memory_bytes(&node->children) + scale(measured.bytes, measured.count, total);
}

static uint64_t texts_bytes(const struct nested *node, uint64_t samples)
{
    const uint64_t total = node->texts.count, most = samples == 0 ? total : MIN(samples, total);
    uint64_t bytes = 0;

    for (uint64_t i = 0; i < most; i++)
        bytes += mem_usable(node->texts.items[i].data);
    return mem_usable(node->texts.items) + scale(bytes, most, total);
}

uint64_t nested_contents_bytes(const struct nested *node, uint64_t samples)
{
    return node->kind == NESTED_TREE ? children_bytes(node, samples) : texts_bytes(node, samples);
}

static void destroy(struct value value)
{
    struct nested_tree *tree = tree_of(value);

    nested_free_contents(&tree->root); /* formers that it has still are told of nothing */
    mem_free(tree);
}

static struct value copy(struct value value)
{
    struct nested_tree *tree = tree_create();

    copy_contents(&tree->root, &tree_of(value)->root);
    return (struct value){tree, ENCODING_RAW};
}

static uint64_t memory_bytes(struct value value, uint64_t samples)
{
    const struct nested_tree *tree = tree_of(value);

    return mem_usable(tree) + nested_contents_bytes(&tree->root, samples);
}

static uint64_t free_effort(struct value value)
{
    return tree_of(value)->root.effort;
}

static uint64_t validate_node(const struct nested *node, uint64_t moment);

struct validated {
    uint64_t moment, effort;
};

static void validate_child(void *item, void *context)
{
    const struct nested_child *child = item;
    struct validated *validated = context;

    assert(child->name_size != 0);
    validated->effort += validate_node(&child->node, validated->moment);
}

/* Returns the effort. */
static uint64_t validate_node(const struct nested *node, uint64_t moment)
{
    struct validated validated = {moment, 1};

    assert(node->born <= moment);
    if (node->kind == NESTED_TREE) {
        table_validate(&node->children, child_hash);
        table_each(&node->children, validate_child, &validated);
    } else {
        assert(node->texts.count != 0 && (node->texts.count == 1) == (node->kind == NESTED_TEXT));
        validated.effort += node->texts.count;
    }
    assert(validated.effort == node->effort);
    return validated.effort;
}

static void validate(struct value value)
{
    (void)validate_node(&tree_of(value)->root, tree_of(value)->moment);
}

const struct value_ops nested_ops = {.destroy = destroy,
                                     .copy = copy,
                                     .memory_bytes = memory_bytes,
                                     .free_effort = free_effort,
                                     .validate = validate,
                                     .former = &former_nested_ops};

struct value nested_create(void)
{
    return (struct value){tree_create(), ENCODING_RAW};
}

/* Nodes that are there, from the root on; *path is the rest. Returns the index of the last one. */
static unsigned descend(struct nested_tree *tree, struct slice *path, struct nested **nodes)
{
    unsigned depth = 0;

    nodes[0] = &tree->root;
    while (path->data != NULL) {
        struct slice rest = *path;
        struct nested *child = child_find(nodes[depth], nested_path_step(&rest));

        if (child == NULL)
            break;
        *path = rest;
        nodes[++depth] = child;
    }
    return depth;
}

/* nodes[depth] becomes an empty tree. */
static void clear(struct nested_tree *tree, struct nested *const *nodes, unsigned depth, struct value *replaced)
{
    struct nested *node = nodes[depth];

    if (tree->formers == NULL || !nested_formers_take(tree, nodes, depth)) {
        if (replaced != NULL && node->effort >= REPLACED_EFFORT) {
            *replaced = nested_create();
            tree_of(*replaced)->moment = tree->moment;
            nested_move_contents(&tree_of(*replaced)->root, node);
        } else {
            nested_free_contents(node);
            make_empty_tree(node);
        }
    }
    node->born = tree->moment;
}

/* The path begins below nodes[depth]. Returns the depth of its end. */
static unsigned add_path(struct nested_tree *tree, struct slice path, struct nested **nodes, unsigned depth)
{
    if (tree->formers != NULL)
        nested_formers_note_child(tree, nodes, depth);
    while (path.data != NULL) {
        assert(depth < NESTED_DEPTH_MOST);
        nodes[depth + 1] = child_add(nodes[depth], nested_path_step(&path), tree->moment);
        depth++;
    }
    return depth;
}

bool nested_put(struct value *value, struct slice path, const struct slice *values, uint32_t value_count,
                struct value *replaced)
{
    struct nested_tree *tree = tree_of(*value);
    struct nested *nodes[NESTED_DEPTH_MOST + 1];
    unsigned changed = descend(tree, &path, nodes), depth = changed;
    const uint64_t before = nodes[changed]->effort;
    const bool was_there = path.data == NULL;
    uint64_t effort = value_count;

    assert(value_count != 0);
    if (replaced != NULL)
        replaced->data = NULL;
    if (was_there || nodes[changed]->kind != NESTED_TREE)
        clear(tree, nodes, changed, replaced);
    if (!was_there)
        depth = add_path(tree, path, nodes, changed);
    fill(nodes[depth], values, value_count);
    for (; depth != changed; depth--)
        nodes[depth]->effort = ++effort;
    nodes[changed]->effort += effort;
    for (effort = nodes[changed]->effort - before; depth != 0; depth--)
        nodes[depth - 1]->effort += effort;
    return was_there;
}

const struct nested *nested_find(struct value value, struct slice path)
{
    const struct nested *node = &tree_of(value)->root;

    while (node != NULL && path.data != NULL)
        node = child_find(node, nested_path_step(&path));
    return node;
}

enum nested_kind nested_kind(const struct nested *node)
{
    return (enum nested_kind)node->kind;
}

uint64_t nested_count(const struct nested *node)
{
    return node->kind == NESTED_TREE ? table_count(&node->children) : node->texts.count;
}

struct slice nested_text(const struct nested *node, uint64_t index)
{
    assert(node->kind != NESTED_TREE && index < node->texts.count);
    return node->texts.items[index];
}

struct visit {
    nested_fn fn;
    void *context;
};

static void visit_child(void *item, void *context)
{
    const struct nested_child *child = item;
    const struct visit *visit = context;

    visit->fn(slice_make(child->name, child->name_size), &child->node, visit->context);
}

void nested_each(const struct nested *tree, nested_fn fn, void *context)
{
    struct visit visit = {fn, context};

    table_each(&tree->children, visit_child, &visit);
}

/* -------------------------------------------------------------------------------------------------------- JSON -- */

void nested_append_json_text(struct slice text, struct buffer *json)
{
    buffer_append_char(json, '"');
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        if (byte < 0x20) {
            buffer_printf(json, "\\u%04x", byte);
        } else {
            if (byte == '"' || byte == '\\')
                buffer_append_char(json, '\\');
            buffer_append_char(json, (char)byte);
        }
    }
    buffer_append_char(json, '"');
}

static void append_list(const struct nested *node, struct buffer *json)
{
    buffer_append_char(json, '[');
    for (uint32_t i = 0; i < node->texts.count; i++) {
        if (i != 0)
            buffer_append_char(json, ',');
        nested_append_json_text(node->texts.items[i], json);
    }
    buffer_append_char(json, ']');
}

static void append_child(struct slice name, const struct nested *node, void *context)
{
    struct buffer *json = context;

    if (json->data[json->size - 1] != '{')
        buffer_append_char(json, ',');
    nested_append_json_text(name, json);
    buffer_append_text(json, " : ");
    nested_append_json(node, json);
}

void nested_append_json(const struct nested *node, struct buffer *json)
{
    if (node->kind == NESTED_TEXT) {
        nested_append_json_text(node->texts.items[0], json);
    } else if (node->kind == NESTED_LIST) {
        append_list(node, json);
    } else {
        buffer_append_char(json, '{');
        nested_each(node, append_child, json);
        buffer_append_char(json, '}');
    }
}
