#include "data/nested.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/table.h"
#include "data/sample.h"

#include <string.h>

struct nested {
    enum nested_kind kind;
    uint32_t count;      /* of texts: 1 for a text */
    struct slice *texts; /* each an allocation of its own; with the array they belong to the node */
    struct table children;
    size_t name_size;
    char name[];
};

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

static struct slice name_of(const struct nested *node)
{
    return slice_make(node->name, node->name_size);
}

static uint64_t node_hash(const void *item)
{
    const struct nested *node = item;

    return hash_bytes(node->name, node->name_size);
}

static bool node_matches(const void *item, const void *key)
{
    return slice_equal(name_of(item), *(const struct slice *)key);
}

static struct nested *node_create(struct slice name)
{
    struct nested *node = mem_alloc_zero(sizeof(*node) + name.size);

    node->name_size = name.size;
    if (name.size != 0)
        memcpy(node->name, name.data, name.size);
    return node;
}

static void child_free(void *item, void *context);

/* Becomes an empty tree. */
static void node_clear(struct nested *node)
{
    for (uint32_t i = 0; i < node->count; i++)
        mem_free((void *)(uintptr_t)node->texts[i].data);
    mem_free(node->texts);
    node->texts = NULL;
    node->count = 0;
    table_clear(&node->children, child_free, NULL);
    node->kind = NESTED_TREE;
}

static void child_free(void *item, void *context)
{
    (void)context;
    node_clear(item);
    mem_free(item);
}

static void node_fill(struct nested *node, const struct slice *values, uint32_t value_count)
{
    node_clear(node);
    node->kind = value_count == 1 ? NESTED_TEXT : NESTED_LIST;
    node->count = value_count;
    node->texts = mem_alloc(value_count * sizeof(*node->texts));
    for (uint32_t i = 0; i < value_count; i++)
        node->texts[i] = slice_make(mem_copy(values[i].data, values[i].size), values[i].size);
}

static struct nested *child_find(const struct nested *node, struct slice name)
{
    return node->kind != NESTED_TREE
               ? NULL
               : table_find(&node->children, hash_bytes(name.data, name.size), node_matches, &name);
}

static void child_add(struct nested *node, struct nested *child)
{
    table_insert(&node->children, node_hash(child), child, node_hash);
}

/* ------------------------------------------------------------------------------------------------------ values -- */

static struct nested *node_copy(const struct nested *from);

static void copy_child(void *item, void *context)
{
    child_add(context, node_copy(item));
}

static struct nested *node_copy(const struct nested *from)
{
    struct nested *node = node_create(name_of(from));

    if (from->kind != NESTED_TREE)
        node_fill(node, from->texts, from->count);
    node->kind = from->kind;
    table_each(&from->children, copy_child, node);
    return node;
}

static uint64_t node_bytes(const void *item)
{
    const struct nested *node = item;
    uint64_t bytes = mem_usable(node) + mem_usable(node->texts) + table_memory_bytes(&node->children) +
                     sample_memory(&node->children, 0, node_bytes);

    for (uint32_t i = 0; i < node->count; i++)
        bytes += mem_usable(node->texts[i].data);
    return bytes;
}

static void destroy(struct value root)
{
    child_free(root.data, NULL);
}

static struct value copy(struct value root)
{
    return (struct value){node_copy(root.data), ENCODING_RAW};
}

static uint64_t memory_bytes(struct value root, uint64_t samples)
{
    const struct nested *node = root.data;

    if (node->kind != NESTED_TREE)
        return node_bytes(node);
    return mem_usable(node) + table_memory_bytes(&node->children) + sample_memory(&node->children, samples, node_bytes);
}

static void add_effort(void *item, void *context)
{
    const struct nested *node = item;
    uint64_t *effort = context;

    *effort += 1 + node->count;
    table_each(&node->children, add_effort, context);
}

static uint64_t free_effort(struct value root)
{
    uint64_t effort = 0;

    add_effort(root.data, &effort);
    return effort;
}

const struct value_ops nested_ops = {.destroy = destroy,
                                     .copy = copy,
                                     .memory_bytes = memory_bytes,
                                     .free_effort = free_effort};

struct value nested_create(void)
{
    return (struct value){node_create(SLICE_EMPTY), ENCODING_RAW};
}

bool nested_put(struct value *root, struct slice path, const struct slice *values, uint32_t value_count)
{
    struct nested *node = root->data;
    bool was_there = true;

    assert(value_count != 0);
    while (path.data != NULL) {
        struct slice name = nested_path_step(&path);
        struct nested *child = child_find(node, name);

        was_there = child != NULL;
        if (child == NULL) {
            if (node->kind != NESTED_TREE)
                node_clear(node);
            child = node_create(name);
            child_add(node, child);
        }
        node = child;
    }
    node_fill(node, values, value_count);
    return was_there;
}

const struct nested *nested_find(struct value root, struct slice path)
{
    const struct nested *node = root.data;

    while (node != NULL && path.data != NULL)
        node = child_find(node, nested_path_step(&path));
    return node;
}

enum nested_kind nested_kind(const struct nested *node)
{
    return node->kind;
}

uint64_t nested_count(const struct nested *node)
{
    return node->kind == NESTED_TREE ? table_count(&node->children) : node->count;
}

struct slice nested_text(const struct nested *node, uint64_t index)
{
    assert(index < node->count);
    return node->texts[index];
}

struct visit {
    nested_fn fn;
    void *context;
};

static void visit_child(void *item, void *context)
{
    const struct visit *visit = context;

    visit->fn(name_of(item), item, visit->context);
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
    for (uint32_t i = 0; i < node->count; i++) {
        if (i != 0)
            buffer_append_char(json, ',');
        nested_append_json_text(node->texts[i], json);
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
        nested_append_json_text(node->texts[0], json);
    } else if (node->kind == NESTED_LIST) {
        append_list(node, json);
    } else {
        buffer_append_char(json, '{');
        nested_each(node, append_child, json);
        buffer_append_char(json, '}');
    }
}
