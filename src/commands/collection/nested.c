/* KEYDB.NHSET and KEYDB.NHGET: trees of texts, whose paths begin with the key. */
#include "commands/shared/families.h"

#include "commands/shared/typed.h"
#include "data/nested.h"
#include "store/lazyfree.h"

/* The key is the first component of the path; NHGET may have a format before the path. */
static bool path_at(uint32_t index, uint32_t flags, struct key_positions *positions)
{
    key_positions_add(positions, index, flags | KEY_PATH);
    return true;
}

static bool nhset_find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    (void)args;
    return arg_count >= 2 && path_at(1, KEY_RW | KEY_UPDATE, positions);
}

static bool nhget_find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    (void)args;
    return (arg_count == 2 || arg_count == 3) && path_at(arg_count - 1, KEY_RO | KEY_ACCESS, positions);
}

/* Parses the key's path; data NULL: there is no path. False: it is invalid, an error was replied. */
static bool parse_path(struct request *request, uint32_t index, struct slice *rest)
{
    *rest = request_arg(request, index);
    switch (nested_path_check(*rest)) {
    case NESTED_PATH_EMPTY_COMPONENT:
        reply_syntax_error(request);
        return false;
    case NESTED_PATH_TOO_DEEP:
        reply_errorf(request, "ERR a path may have at most %d components", NESTED_DEPTH_MOST);
        return false;
    default:
        (void)nested_path_step(rest);
        return true;
    }
}

/* ----------------------------------------------------------------------------------------------------- setting -- */

/* A key alone with one value is a string like any other. */
static bool put_string(struct request *request, const struct key *key)
{
    bool was_there = access_find(request->access, request->db, key) != NULL;
    struct change change;

    change_begin(&change, request->access, request->db, key);
    change_put_string(&change, request_arg(request, 2), EXPIRE_NEVER);
    change_end(&change, EVENT_STRING | EVENT_REPLACES, "set");
    return was_there;
}

/* A node that is not a tree is replaced where a tree is needed, as with SET. */
static bool put_nested(struct request *request, const struct key *key, struct slice rest)
{
    const struct entry *entry = access_find(request->access, request->db, key);
    bool is_nested = entry != NULL && entry->type == TYPE_NESTED, was_there;
    struct value value = is_nested ? entry_value(entry) : nested_create();
    struct value replaced;
    struct change change;

    was_there = rest.data == NULL ? entry != NULL : is_nested;
    change_begin(&change, request->access, request->db, key);
    was_there = nested_put(&value, rest, &request->args[2], request->arg_count - 2, &replaced) && was_there;
    if (replaced.data != NULL)
        lazyfree_of_part(&change, &nested_ops, replaced);
    if (is_nested)
        change_keep_value(&change, value);
    else
        change_put_value(&change, TYPE_NESTED, value, EXPIRE_NEVER);
    change_end(&change, is_nested ? EVENT_HASH : EVENT_HASH | EVENT_REPLACES, "nhset");
    return was_there;
}

static void cmd_nhset(struct request *request)
{
    const struct key *key = &request->keys[0];
    struct slice rest;

    if (!parse_path(request, 1, &rest))
        return;
    if (rest.data == NULL && request->arg_count == 3)
        reply_int(request, put_string(request, key));
    else
        reply_int(request, put_nested(request, key, rest));
}

/* ----------------------------------------------------------------------------------------------------- reading -- */

static void reply_node(struct request *request, const struct nested *node);

static void reply_child(struct slice name, const struct nested *node, void *context)
{
    reply_array(context, 2);
    reply_bulk(context, name);
    reply_node(context, node);
}

static void reply_node(struct request *request, const struct nested *node)
{
    if (nested_kind(node) == NESTED_TEXT) {
        reply_bulk(request, nested_text(node, 0));
        return;
    }
    reply_array(request, nested_count(node));
    if (nested_kind(node) == NESTED_TREE)
        nested_each(node, reply_child, request);
    for (uint64_t i = 0; nested_kind(node) == NESTED_LIST && i < nested_count(node); i++)
        reply_bulk(request, nested_text(node, i));
}

static void reply_json(struct request *request, const struct nested *node, struct slice text)
{
    struct buffer json = {0};

    if (node != NULL)
        nested_append_json(node, &json);
    else
        nested_append_json_text(text, &json);
    reply_bulk(request, buffer_slice(&json));
    buffer_fini(&json);
}

static void reply_found(struct request *request, const struct entry *entry, struct slice rest, bool as_json)
{
    char scratch[ENTRY_INT_TEXT_BYTES];
    struct slice text = SLICE_EMPTY;
    const struct nested *node = NULL;
    bool found = false;

    if (entry != NULL && entry->type == TYPE_STRING) {
        found = rest.data == NULL;
        text = entry_string(entry, scratch);
    } else if (entry != NULL) {
        node = nested_find(entry_value(entry), rest);
        found = node != NULL;
    }
    if (!found)
        reply_error(request, "ERR no such key");
    else if (as_json)
        reply_json(request, node, text);
    else if (node != NULL)
        reply_node(request, node);
    else
        reply_bulk(request, text);
}

static void cmd_nhget(struct request *request)
{
    const struct entry *entry;
    bool as_json = false;
    struct slice rest;

    if (request->arg_count > 3) {
        reply_syntax_error(request);
        return;
    }
    if (request->arg_count == 3) {
        as_json = request_arg_is(request, 1, "JSON");
        if (!as_json && !request_arg_is(request, 1, "RESP")) {
            reply_syntax_error(request);
            return;
        }
    }
    if (!parse_path(request, request->arg_count - 1, &rest))
        return;
    entry = access_read(request->access, request->db, &request->keys[0]);
    if (entry != NULL && entry->type != TYPE_STRING && !request_expect_type(request, entry, TYPE_NESTED))
        return;
    reply_found(request, entry, rest, as_json);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row nested_commands[] = {
    {.name = "keydb.nhset", .run = cmd_nhset, .arity = -3, .access = ACCESS_STRIPED, .flags = "write denyoom fast",
     .categories = "@write @hash @fast", .keys = "RW,UPDATE@index:1@range:0,1,0", .find_keys = nhset_find_keys,
     .group = "generic", .since = "6.0.18", .summary = "Sets a string, or a list of strings, in a nested hash.",
     .complexity = "O(N) for N components of the path and values", .syntax = "KEYDB.NHSET path value [value ...]"},
    {.name = "keydb.nhget", .run = cmd_nhget, .arity = -2, .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @hash @fast", .keys = "RO,ACCESS@index:1@range:0,1,0", .find_keys = nhget_find_keys,
     .group = "generic", .since = "6.0.18", .summary = "Returns a value of a nested hash.",
     .complexity = "O(N) for N texts returned", .syntax = "KEYDB.NHGET [JSON|RESP] path"},
    {.name = NULL},
};
/* clang-format on */
