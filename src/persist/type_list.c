/* Lists, as files have them. */
#include "persist/types.h"

#include "data/list.h"
#include "data/listpack.h"

/* ----------------------------------------------------------------------------------------------------- reading -- */

static struct quicklist *begin_list(const struct rdb_limits *limits, struct rdb_value *value)
{
    value->type = TYPE_LIST;
    value->value = list_create(&limits->list);
    return list_of(value->value);
}

static bool read_list(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    struct quicklist *list = begin_list(limits, value);
    struct slice text;
    uint64_t count;

    if (!rdb_read_count(reader, 1, &count))
        return false;
    for (; count != 0; count--) {
        if (!rdb_read_text(reader, &text))
            return false;
        quicklist_push(list, QUICKLIST_TAIL, text);
    }
    return true;
}

static bool read_ziplist(struct rdb_reader *reader, struct quicklist *list)
{
    struct packed packed;

    if (!rdb_open_packed(reader, PACKED_ZIPLIST, &packed))
        return false;
    while (packed.left != 0)
        quicklist_push(list, QUICKLIST_TAIL, packed_next(&packed));
    return true;
}

static bool read_list_ziplist(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    return read_ziplist(reader, begin_list(limits, value));
}

static bool read_listpack(struct rdb_reader *reader, struct quicklist *list)
{
    struct listpack *pack;
    struct slice bytes;

    if (!rdb_read_text(reader, &bytes))
        return false;
    if (!listpack_check(bytes))
        return rdb_corrupt(reader, "a node of a list is damaged");
    pack = listpack_from_bytes(bytes);
    quicklist_append_listpack(list, &pack);
    return true;
}

static bool read_node(struct rdb_reader *reader, struct quicklist *list)
{
    struct slice text;
    uint64_t form;

    if (!rdb_read_length(reader, &form))
        return false;
    if (form == RDB_NODE_LISTPACK)
        return read_listpack(reader, list);
    if (form != RDB_NODE_PLAIN)
        return rdb_corrupt(reader, "a node of a list has an unknown form");
    if (!rdb_read_text(reader, &text))
        return false;
    if (text.size == 0) /* large elements alone have a node of their own */
        return rdb_corrupt(reader, "a node of a list is empty");
    quicklist_push(list, QUICKLIST_TAIL, text);
    return true;
}

static bool read_list_nodes(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    struct quicklist *list = begin_list(limits, value);
    uint64_t count;

    if (!rdb_read_count(reader, 1, &count))
        return false;
    for (; count != 0; count--) {
        if (!(value->form == RDB_LIST_NODES ? read_node(reader, list) : read_ziplist(reader, list)))
            return false;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------------------- writing -- */

static enum rdb_type form_of(struct rdb_writer *writer, const struct entry *entry)
{
    (void)entry;
    return writer->options.least >= RDB_VERSION_LISTPACKS ? RDB_LIST_NODES : RDB_LIST;
}

static void write_packed_value(struct rdb_writer *writer, const struct listpack_value *value)
{
    if (value->text.data != NULL)
        rdb_write_text(writer, value->text);
    else
        rdb_write_number(writer, value->number);
}

static void write_list(struct rdb_writer *writer, const struct entry *entry)
{
    const struct quicklist *list = list_of(entry_value(entry));
    struct quicklist_iter iter;
    struct listpack_value value;

    rdb_write_count(writer, quicklist_count(list));
    quicklist_iter_init(&iter, list, 0, QUICKLIST_FORWARD);
    while (quicklist_iter_next(&iter, &value)) {
        rdb_write_element(writer);
        write_packed_value(writer, &value);
    }
    quicklist_iter_fini(&iter);
}

static void write_list_nodes(struct rdb_writer *writer, const struct entry *entry)
{
    const struct quicklist *list = list_of(entry_value(entry));
    struct buffer scratch = {0};

    rdb_write_count(writer, quicklist_node_count(list));
    for (const struct quicklist_node *node = quicklist_first_node(list); node != NULL;
         node = quicklist_next_node(list, node)) {
        struct slice compressed;

        rdb_write_element(writer);
        rdb_write_length(writer, quicklist_node_is_plain(node) ? RDB_NODE_PLAIN : RDB_NODE_LISTPACK);
        if (writer->options.compresses && quicklist_node_compressed(node, &compressed))
            rdb_write_compressed(writer, compressed, quicklist_node_size_bytes(node));
        else
            rdb_write_text(writer, quicklist_node_bytes(node, &scratch));
    }
    buffer_fini(&scratch);
}

/* ----------------------------------------------------------------------------------------- as commands, digest -- */

static void put_commands(struct aof_commands *commands, const struct entry *entry)
{
    const struct quicklist *list = list_of(entry_value(entry));
    struct quicklist_iter iter;
    struct listpack_value value;

    aof_elements(commands, "RPUSH", 1, quicklist_count(list));
    quicklist_iter_init(&iter, list, 0, QUICKLIST_FORWARD);
    while (quicklist_iter_next(&iter, &value)) {
        aof_element(commands);
        if (value.text.data != NULL)
            aof_put(commands, value.text);
        else
            aof_put_number(commands, value.number);
    }
    quicklist_iter_fini(&iter);
}

static void write_element(struct rdb_writer *writer, const struct former_element *element)
{
    rdb_write_element(writer);
    rdb_write_text(writer, element->first);
}

static void put_element(struct aof_commands *commands, const struct former_element *element)
{
    aof_element(commands);
    aof_put(commands, element->first);
}

/* The number of nodes that they will make is not known before. */
static const struct type_elements elements = {.form_is_fixed = true,
                                              .form = RDB_LIST,
                                              .write = write_element,
                                              .command = "RPUSH",
                                              .width = 1,
                                              .put = put_element};

static void digest_value(struct digest *digest, const struct entry *entry)
{
    char scratch[NUMBER_I64_SPACE];
    struct quicklist_iter iter;
    struct listpack_value value;

    quicklist_iter_init(&iter, list_of(entry_value(entry)), 0, QUICKLIST_FORWARD);
    while (quicklist_iter_next(&iter, &value))
        digest_mix(digest, listpack_value_text(&value, scratch));
    quicklist_iter_fini(&iter);
}

/* --------------------------------------------------------------------------------------------------------- row -- */

/* clang-format off */
static const struct rdb_form forms[] = {
    {.number = RDB_LIST, .name = "list", .head = "", .each = "t", .read = read_list, .write = write_list},
    {.number = RDB_LIST_ZIPLIST, .name = "list as ziplist", .head = "t", .read = read_list_ziplist},
    {.number = RDB_LIST_ZIPLISTS, .name = "list of ziplists", .head = "", .each = "t", .read = read_list_nodes},
    {.number = RDB_LIST_NODES, .name = "list of listpacks", .head = "", .each = "lt", .read = read_list_nodes,
     .write = write_list_nodes},
    {0},
};
/* clang-format on */

const struct type_row type_list = {.known = {.name = "list", .ops = &list_ops},
                                   .forms = forms,
                                   .form_of = form_of,
                                   .put_commands = put_commands,
                                   .elements = &elements,
                                   .digest_number = 1,
                                   .digest = digest_value};
