/* DEBUG subcommands that show how lists, hashes, sets and sorted sets are stored in memory, and that change it. They
 * reply their output: while keys are locked nothing is printed. */
#include "commands/debug/debug_priv.h"

#include "base/number.h"
#include "base/table.h"
#include "base/words.h"
#include "commands/shared/type_options.h"
#include "server/core/request.h"

enum { SHOWN_BYTES = 64 }; /* of an element */

static const uint64_t packed_threshold_most = (UINT64_C(4) << 30) - (1 << 20);

/* NULL: there is no such key, which was replied. A string is in none of the forms that are described here. */
static const struct entry *existing_entry(struct request *request)
{
    const struct entry *entry = access_look(request->access, request->db, &request->keys[0]);

    if (entry == NULL)
        reply_error(request, "ERR no such key");
    return entry;
}

static void reply_lines(struct request *request, struct buffer *text)
{
    reply_verbatim(request, "txt", buffer_slice(text));
    buffer_fini(text);
}

/* ------------------------------------------------------------------------------------------------------ tables -- */

/* NULL: the value is not in one. */
static const struct table *entry_table(const struct store *store, const struct entry *entry)
{
    const struct value_ops *ops = store->types[entry->type].ops;

    return ops != NULL && ops->table != NULL ? ops->table(entry_value(entry)) : NULL;
}

static void debug_htstats_key(struct request *request)
{
    const struct entry *entry = existing_entry(request);
    const struct table *table = entry != NULL ? entry_table(request->access->store, entry) : NULL;
    struct buffer text = {0};

    if (entry == NULL)
        return;
    if (table == NULL) {
        reply_error(request, "ERR The value stored at the specified key is not represented using an hash table");
        return;
    }
    buffer_printf(&text,
                  "[Dictionary HT]\n table size: %llu\n number of elements: %llu\n load: %.2f%%\n memory: %llu\n",
                  (unsigned long long)table_slot_count(table), (unsigned long long)table_count(table),
                  100.0 * (double)table_count(table) / (double)MAX(table_slot_count(table), UINT64_C(1)),
                  (unsigned long long)table_memory_bytes(table));
    reply_lines(request, &text);
}

/* --------------------------------------------------------------------------------------- listpacks, quicklists -- */

static void describe_text(struct buffer *text, struct slice element)
{
    buffer_printf(text, "%zu bytes ", element.size);
    words_quote(text, slice_make(element.data, MIN(element.size, (size_t)SHOWN_BYTES)));
    buffer_append_text(text, element.size > SHOWN_BYTES ? "...\n" : "\n");
}

static void describe_elements(struct buffer *text, const struct listpack *list, const char *indent)
{
    unsigned index = 0;

    for (listpack_at at = listpack_first(list); at != LISTPACK_NONE; at = listpack_next(list, at), index++) {
        const struct listpack_value value = listpack_get(list, at);

        buffer_printf(text, "%s%u at %u: ", indent, index, (unsigned)at);
        if (value.text.data != NULL)
            describe_text(text, value.text);
        else
            buffer_printf(text, "number %lld\n", (long long)value.number);
    }
}

static bool is_listpack(const struct entry *entry)
{
    return entry->type != TYPE_STRING && entry_value(entry).encoding == ENCODING_LISTPACK;
}

static void debug_listpack(struct request *request)
{
    const struct entry *entry = existing_entry(request);
    struct buffer text = {0};
    const struct listpack *list;

    if (entry == NULL)
        return;
    if (!is_listpack(entry)) {
        reply_error(request, "ERR Not a listpack encoded object.");
        return;
    }
    list = entry_value(entry).data;
    buffer_printf(&text, "%u bytes, %u elements\n", (unsigned)listpack_bytes(list), (unsigned)listpack_count(list));
    describe_elements(&text, list, "");
    reply_lines(request, &text);
}

static void describe_node(struct buffer *text, const struct quicklist_node *node, bool with_elements)
{
    struct buffer scratch = {0};
    struct slice bytes;

    buffer_printf(text, "%s, %u elements, %zu bytes", quicklist_node_is_plain(node) ? "plain" : "listpack",
                  (unsigned)quicklist_node_elements(node), quicklist_node_size_bytes(node));
    if (quicklist_node_compressed(node, &bytes))
        buffer_printf(text, ", compressed to %zu", bytes.size);
    buffer_append_char(text, '\n');
    if (with_elements) {
        bytes = quicklist_node_bytes(node, &scratch);
        if (quicklist_node_is_plain(node)) {
            buffer_append_text(text, "    0: ");
            describe_text(text, bytes);
        } else {
            describe_elements(text, (const struct listpack *)(const void *)bytes.data, "    ");
        }
    }
    buffer_fini(&scratch);
}

static void debug_quicklist(struct request *request)
{
    const struct entry *entry = existing_entry(request);
    bool with_elements = request->arg_count == 4 && !slice_equal_text(request_arg(request, 3), "0");
    struct quicklist_limits limits;
    const struct quicklist *list;
    struct buffer text = {0};
    unsigned index = 0;

    if (entry == NULL)
        return;
    if (entry->type != TYPE_LIST) {
        reply_error(request, "ERR Not a quicklist encoded object.");
        return;
    }
    list = entry_value(entry).data;
    limits = quicklist_limits(list);
    buffer_printf(&text, "%llu elements, %u nodes, fill %d, compress %u\n", (unsigned long long)quicklist_count(list),
                  (unsigned)quicklist_node_count(list), limits.fill, (unsigned)limits.compress);
    for (const struct quicklist_node *node = quicklist_first_node(list); node != NULL;
         node = quicklist_next_node(list, node), index++) {
        buffer_printf(&text, "node %u: ", index);
        describe_node(&text, node, with_elements);
    }
    reply_lines(request, &text);
}

static void debug_packed_threshold(struct request *request)
{
    uint64_t bytes;

    if (!number_parse_memory(request_arg(request, 2), &bytes) || bytes > packed_threshold_most) {
        reply_error(request, "ERR argument must be a memory value bigger than 1 and smaller than 4gb");
        return;
    }
    type_set_list_plain_from(bytes);
    reply_ok(request);
}

const struct debug_row debug_value_rows[] = {
    {"htstats-key", "<key>", "Return statistics of the hash table of <key>.", debug_htstats_key, 3, 3, ACCESS_STRIPED,
     2, 2},
    {"listpack", "<key>", "Return the layout of the listpack of <key>: offset and content of each element.",
     debug_listpack, 3, 3, ACCESS_STRIPED, 2, 2},
    {"quicklist", "<key> [<0|1>]",
     "Return the layout of the quicklist of <key>: its nodes and, with 1, their elements.", debug_quicklist, 3, 4,
     ACCESS_STRIPED, 2, 2},
    {"quicklist-packed-threshold", "<size>",
     "In new lists, elements of this size or more get nodes of their own.\n"
     "0: only elements that no node could hold.",
     debug_packed_threshold, 3, 3, ACCESS_FREE, 0, 0},
    {0},
};
