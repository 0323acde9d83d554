/* Nested hashes (KEYDB.NHSET) in files. KeyDB has no form for them. Here they are the value of a module type called
 * "kdbnested", so that readers without this type can skip it:
 *
 *     type 7 | id | node | 0
 *     node = unsigned NESTED_TREE | unsigned children | (text name | node) ...
 *            unsigned NESTED_TEXT | text
 *            unsigned NESTED_LIST | unsigned texts | text ...
 *     unsigned = 2, length; text = 5, text */
#include "persist/types.h"

#include "base/assert.h"
#include "base/mem.h"
#include "data/former_nested.h"
#include "persist/rdb_module.h"

enum { FORM_VERSION = 1, NAME_LETTERS = 9, LETTER_BITS = 6, VERSION_BITS = 10 };

/* Nine letters of an alphabet of 64, then the version of the form. */
static uint64_t module_id(void)
{
    static const char name[] = "kdbnested";
    uint64_t id = 0;

    static_assert(sizeof(name) - 1 == NAME_LETTERS, "names of module types have nine letters");
    for (int i = 0; i < NAME_LETTERS; i++)
        id = id << LETTER_BITS | (uint64_t)(name[i] - 'a' + 26); /* small letters follow the capital ones */
    return id << VERSION_BITS | FORM_VERSION;
}

/* ----------------------------------------------------------------------------------------------------- writing -- */

static void write_unsigned(struct rdb_writer *writer, uint64_t number)
{
    rdb_write_length(writer, RDB_MODULE_UNSIGNED);
    rdb_write_length(writer, number);
}

static void write_text(struct rdb_writer *writer, struct slice text)
{
    rdb_write_length(writer, RDB_MODULE_TEXT);
    rdb_write_text(writer, text);
}

static void write_node(struct rdb_writer *writer, const struct nested *node);

static void write_child(struct slice name, const struct nested *node, void *context)
{
    write_text(context, name);
    write_node(context, node);
}

static void write_node(struct rdb_writer *writer, const struct nested *node)
{
    enum nested_kind kind = nested_kind(node);

    write_unsigned(writer, kind);
    switch (kind) {
    case NESTED_TREE:
        write_unsigned(writer, nested_count(node));
        nested_each(node, write_child, writer);
        break;
    case NESTED_TEXT:
        write_text(writer, nested_text(node, 0));
        break;
    case NESTED_LIST:
        write_unsigned(writer, nested_count(node));
        for (uint64_t i = 0; i < nested_count(node); i++)
            write_text(writer, nested_text(node, i));
        break;
    }
}

static void write_head(struct rdb_writer *writer)
{
    rdb_write_length(writer, module_id());
}

static void write_nested(struct rdb_writer *writer, const struct entry *entry)
{
    write_head(writer);
    write_node(writer, nested_find(entry_value(entry), SLICE_EMPTY));
    rdb_write_length(writer, RDB_MODULE_END);
}

/* Of one that comes in parts: the words of write_node. */
static void write_part(struct rdb_writer *writer, enum rdb_type form, const struct entry *entry,
                       const struct former_element *element)
{
    const enum nested_part part = (enum nested_part)element->part;
    struct nested_part_head head;

    (void)form;
    (void)entry;
    if (element->first.size != 0)
        write_text(writer, element->first);
    if (part == NESTED_PART_TREE || part == NESTED_PART_LIST) {
        assert(element->second.size == sizeof(head));
        memcpy(&head, element->second.data, sizeof(head));
        write_unsigned(writer, part == NESTED_PART_TREE ? NESTED_TREE : NESTED_LIST);
        write_unsigned(writer, head.count);
        return;
    }
    if (part == NESTED_PART_TEXT)
        write_unsigned(writer, NESTED_TEXT);
    write_text(writer, element->second);
}

static void write_end(struct rdb_writer *writer, enum rdb_type form, const struct entry *entry)
{
    (void)form;
    (void)entry;
    rdb_write_length(writer, RDB_MODULE_END);
}

/* ----------------------------------------------------------------------------------------------------- reading -- */

struct nested_reader {
    struct rdb_reader *reader;
    struct value *tree;
    struct buffer path; /* of the node at hand */
};

static bool corrupt(struct nested_reader *nested)
{
    return rdb_corrupt(nested->reader, "a nested hash is damaged");
}

static bool read_item(struct nested_reader *nested, uint64_t wanted)
{
    uint64_t item;

    if (!rdb_read_length(nested->reader, &item))
        return false;
    return item == wanted || corrupt(nested);
}

static bool read_unsigned(struct nested_reader *nested, uint64_t *number)
{
    return read_item(nested, RDB_MODULE_UNSIGNED) && rdb_read_length(nested->reader, number);
}

static bool read_count(struct nested_reader *nested, uint64_t *count)
{
    return read_item(nested, RDB_MODULE_UNSIGNED) && rdb_read_count(nested->reader, 2, count);
}

static bool put(struct nested_reader *nested, const struct slice *values, uint32_t count)
{
    struct slice path = buffer_slice(&nested->path);

    if (path.size != 0 && nested_path_check(path) != NESTED_PATH_GOOD)
        return corrupt(nested);
    return !nested_put(nested->tree, path, values, count, NULL) || path.size == 0 || corrupt(nested);
}

static bool read_single(struct nested_reader *nested)
{
    struct slice text;

    return read_item(nested, RDB_MODULE_TEXT) && rdb_read_text(nested->reader, &text) && put(nested, &text, 1);
}

static bool read_list(struct nested_reader *nested)
{
    struct buffer bytes = {0};
    struct slice *texts = NULL, text;
    uint64_t count, read = 0, at = 0;
    bool good;

    if (!read_count(nested, &count))
        return false;
    texts = mem_try_alloc((count + (count == 0)) * sizeof(*texts));
    if (texts == NULL || count > UINT32_MAX || count == 0) {
        mem_free(texts);
        return corrupt(nested);
    }
    for (; read < count && read_item(nested, RDB_MODULE_TEXT) && rdb_read_text(nested->reader, &text); read++) {
        buffer_append_slice(&bytes, text);
        texts[read].size = text.size;
    }
    for (uint64_t i = 0; i < read; at += texts[i++].size)
        texts[i].data = bytes.data + at;
    good = read == count && put(nested, texts, (uint32_t)count);
    buffer_fini(&bytes);
    mem_free(texts);
    return good;
}

static bool read_node(struct nested_reader *nested, unsigned depth);

static bool read_child(struct nested_reader *nested, unsigned depth)
{
    size_t kept = nested->path.size;
    struct slice name;
    bool good;

    if (!read_item(nested, RDB_MODULE_TEXT) || !rdb_read_text(nested->reader, &name))
        return false;
    if (name.size == 0 || memchr(name.data, '.', name.size) != NULL)
        return corrupt(nested);
    if (kept != 0)
        buffer_append_char(&nested->path, '.');
    buffer_append_slice(&nested->path, name);
    good = read_node(nested, depth + 1);
    buffer_truncate(&nested->path, kept);
    return good;
}

static bool read_node(struct nested_reader *nested, unsigned depth)
{
    uint64_t kind, count;

    if (depth > NESTED_DEPTH_MOST || !read_unsigned(nested, &kind))
        return corrupt(nested);
    if (kind == NESTED_TEXT)
        return read_single(nested);
    if (kind == NESTED_LIST)
        return read_list(nested);
    if (kind != NESTED_TREE || !read_count(nested, &count))
        return corrupt(nested);
    for (; count != 0; count--) {
        if (!read_child(nested, depth))
            return false;
    }
    return true;
}

static bool read_nested(struct rdb_reader *reader, struct value *tree)
{
    struct nested_reader nested = {.reader = reader, .tree = tree};
    bool good;

    *tree = nested_create();
    good = read_node(&nested, 0) && read_item(&nested, RDB_MODULE_END);
    buffer_fini(&nested.path);
    return good;
}

static bool read_module(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    uint64_t id;
    char name[10];

    if (!rdb_read_length(reader, &id))
        return false;
    if (id == module_id()) {
        value->type = TYPE_NESTED;
        return read_nested(reader, &value->value);
    }
    rdb_module_name(id, name);
    value->is_strange = true;
    if (!limits->skips_strange)
        return rdb_fail(reader, STATUS_UNSUPPORTED, "a value of the unknown module type '%s'", name);
    return rdb_skip_module_items(reader);
}

static bool refuse_early_module(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    (void)limits;
    (void)value;
    return rdb_fail(reader, STATUS_UNSUPPORTED, "a value of a module in the form of 4.0 release candidates");
}

/* ------------------------------------------------------------------------------------------------------ digest -- */

static void digest_node(struct digest *digest, const struct nested *node);

static void digest_child(struct slice name, const struct nested *node, void *context)
{
    struct digest digest;

    digest_begin_part(&digest, context);
    digest_mix(&digest, name);
    digest_node(&digest, node);
    digest_add_part(context, &digest);
}

static void digest_node(struct digest *digest, const struct nested *node)
{
    digest_mix_u32(digest, nested_kind(node));
    if (nested_kind(node) == NESTED_TREE)
        nested_each(node, digest_child, digest);
    for (uint64_t i = 0; nested_kind(node) != NESTED_TREE && i < nested_count(node); i++)
        digest_mix(digest, nested_text(node, i));
}

static void digest_value(struct digest *digest, const struct entry *entry)
{
    digest_node(digest, nested_find(entry_value(entry), SLICE_EMPTY));
}

/* --------------------------------------------------------------------------------------------------------- row -- */

static const struct rdb_form forms[] = {
    {.number = RDB_MODULE, .name = "module value", .read = read_module, .write = write_nested},
    {.number = RDB_MODULE_EARLY, .name = "module value of release candidates", .read = refuse_early_module},
    {0},
};

static const struct type_elements elements = {.form_is_fixed = true,
                                              .form = RDB_MODULE,
                                              .write_head = write_head,
                                              .write_part = write_part,
                                              .write_rest = write_end};

const struct type_row type_nested = {.known = {.name = "unknown", .ops = &nested_ops},
                                     .forms = forms,
                                     .elements = &elements,
                                     .digest_number = 64,
                                     .digest = digest_value};
