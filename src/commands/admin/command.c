/* COMMAND and its subcommands: the registry told to clients. */
#include "base/mem.h"
#include "commands/shared/families.h"

#include "base/assert.h"
#include "base/glob.h"
#include "server/command/command_syntax.h"
#include "server/command/command_words.h"
#include "server/core/request.h"

#include <string.h>

/* False: taken away by rename-command. */
static bool is_there(const struct command *command)
{
    return command->container != NULL ? command->container->name.size != 0 : command->name.size != 0;
}

static uint32_t count_there(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < command_top_count(); i++)
        count += is_there(command_top_at(i));
    return count;
}

/* --- COMMAND INFO: ten elements a command --- */

static void reply_flags(struct request *request, const struct command *command)
{
    struct resp_deferred head = resp_begin_deferred(request->out);
    uint64_t count = 0;

    for (unsigned i = 0; command_flag_at(i) != 0; i++) {
        const char *name = command_flag_name(command_flag_at(i));

        if ((command->flags & command_flag_at(i)) != 0 && name != NULL) {
            reply_status(request, name);
            count++;
        }
    }
    resp_end_deferred(request->out, request->proto, head, RESP_SET, count);
}

static void reply_categories(struct request *request, const struct command *command)
{
    char name[32] = "@";

    reply_set(request, (uint64_t)__builtin_popcountll(command->categories));
    for (unsigned bit = 0; command_category_name(bit) != NULL; bit++) {
        if ((command->categories & UINT64_C(1) << bit) == 0)
            continue;
        strncpy(name + 1, command_category_name(bit), sizeof(name) - 2);
        reply_status(request, name);
    }
}

/* The next of some texts separated by `separator`. False: there is none. */
static bool next_part(struct slice *rest, char separator, struct slice *part)
{
    const char *end;

    if (rest->size == 0)
        return false;
    end = memchr(rest->data, separator, rest->size);
    *part = slice_make(rest->data, end != NULL ? (size_t)(end - rest->data) : rest->size);
    *rest = slice_skip(*rest, end != NULL ? part->size + 1 : part->size);
    return true;
}

static struct slice optional_text(const char *text)
{
    return slice_from_text(text != NULL ? text : "");
}

static void reply_tips(struct request *request, const struct command *command)
{
    struct slice rest = optional_text(command->row->tips), tip;
    struct resp_deferred head = resp_begin_deferred(request->out);
    uint64_t count = 0;

    for (; next_part(&rest, ' ', &tip); count++)
        reply_bulk(request, tip);
    resp_end_deferred(request->out, request->proto, head, RESP_SET, count);
}

static void reply_key_flags(struct request *request, uint32_t flags)
{
    reply_set(request, (uint64_t)__builtin_popcount(flags));
    for (unsigned i = 0; key_flag_at(i) != 0; i++) {
        if (flags & key_flag_at(i))
            reply_status(request, key_flag_name(key_flag_at(i)));
    }
}

static void reply_number(struct request *request, const char *name, int number)
{
    reply_text(request, name);
    reply_int(request, number);
}

/* {type: ..., spec: {...}}: the caller writes the pairs of the inner map. */
static void begin_spec_part(struct request *request, const char *name, const char *type, uint64_t pairs)
{
    reply_text(request, name);
    reply_map(request, 2);
    reply_text(request, "type");
    reply_text(request, type);
    reply_text(request, "spec");
    reply_map(request, pairs);
}

static void reply_begin_search(struct request *request, const struct key_spec *spec)
{
    switch (spec->begin) {
    case KEY_BEGIN_INDEX:
        begin_spec_part(request, "begin_search", "index", 1);
        reply_number(request, "index", spec->index);
        break;
    case KEY_BEGIN_KEYWORD:
        begin_spec_part(request, "begin_search", "keyword", 2);
        reply_text(request, "keyword");
        reply_text(request, spec->keyword);
        reply_number(request, "startfrom", spec->index);
        break;
    case KEY_BEGIN_UNKNOWN:
        begin_spec_part(request, "begin_search", "unknown", 0);
        break;
    }
}

static void reply_find_keys(struct request *request, const struct key_spec *spec)
{
    switch (spec->find) {
    case KEY_FIND_RANGE:
        begin_spec_part(request, "find_keys", "range", 3);
        reply_number(request, "lastkey", spec->last);
        reply_number(request, "keystep", spec->step);
        reply_number(request, "limit", spec->limit);
        break;
    case KEY_FIND_KEYNUM:
        begin_spec_part(request, "find_keys", "keynum", 3);
        reply_number(request, "keynumidx", spec->count_index);
        reply_number(request, "firstkey", spec->first);
        reply_number(request, "keystep", spec->key_step);
        break;
    case KEY_FIND_UNKNOWN:
        begin_spec_part(request, "find_keys", "unknown", 0);
        break;
    }
}

static void reply_key_specs(struct request *request, const struct command *command)
{
    struct slice rest = optional_text(command->row->key_notes), note;

    reply_set(request, command->key_spec_count);
    for (uint32_t i = 0; i < command->key_spec_count; i++) {
        bool noted = next_part(&rest, '|', &note) && note.size != 0;

        reply_map(request, noted ? 4 : 3);
        if (noted) {
            reply_text(request, "notes");
            reply_bulk(request, note);
        }
        reply_text(request, "flags");
        reply_key_flags(request, command->key_specs[i].flags);
        reply_begin_search(request, &command->key_specs[i]);
        reply_find_keys(request, &command->key_specs[i]);
    }
}

static void reply_info(struct request *request, const struct command *command)
{
    reply_array(request, 10);
    reply_bulk(request, command->full_name);
    reply_int(request, command->arity);
    reply_flags(request, command);
    reply_int(request, command->first_key);
    reply_int(request, command->last_key);
    reply_int(request, command->key_step);
    reply_categories(request, command);
    reply_tips(request, command);
    reply_key_specs(request, command);
    if (command->subcommand_count == 0) {
        reply_set(request, 0);
        return;
    }
    reply_array(request, command->subcommand_count);
    for (uint32_t i = 0; i < command->subcommand_count; i++)
        reply_info(request, &command->subcommands[i]);
}

static void reply_all_infos(struct request *request)
{
    reply_array(request, count_there());
    for (uint32_t i = 0; i < command_top_count(); i++) {
        if (is_there(command_top_at(i)))
            reply_info(request, command_top_at(i));
    }
}

static void cmd_command(struct request *request)
{
    reply_all_infos(request);
}

static void cmd_command_info(struct request *request)
{
    if (request->arg_count == 2) {
        reply_all_infos(request);
        return;
    }
    reply_array(request, request->arg_count - 2);
    for (uint32_t i = 2; i < request->arg_count; i++) {
        const struct command *command = command_find_full(request_arg(request, i));

        if (command != NULL)
            reply_info(request, command);
        else
            reply_null(request);
    }
}

static void cmd_command_count(struct request *request)
{
    reply_int(request, count_there());
}

/* --- COMMAND DOCS --- */

static void reply_arguments(struct request *request, const struct syntax_list *list);

static uint64_t reply_slice_field(struct request *request, const char *name, struct slice text)
{
    if (text.size == 0)
        return 0;
    reply_text(request, name);
    reply_bulk(request, text);
    return 1;
}

static uint64_t reply_argument_flags(struct request *request, const struct syntax_node *node)
{
    if (!node->optional && !node->multiple)
        return 0;
    reply_text(request, "flags");
    reply_set(request, (uint64_t)node->optional + node->multiple + (node->multiple && node->multiple_token));
    if (node->optional)
        reply_status(request, "optional");
    if (node->multiple)
        reply_status(request, "multiple");
    if (node->multiple && node->multiple_token)
        reply_status(request, "multiple_token");
    return 1;
}

static void reply_argument(struct request *request, const struct syntax_node *node)
{
    struct resp_deferred head = resp_begin_deferred(request->out);
    uint64_t pairs = 2;

    reply_text(request, "name");
    reply_text(request, node->name);
    reply_text(request, "type");
    reply_text(request, syntax_type_name(node->type));
    if (node->key_spec_index >= 0) {
        reply_number(request, "key_spec_index", node->key_spec_index);
        pairs++;
    }
    if (node->token != NULL) {
        reply_text(request, "token");
        reply_text(request, node->token);
        pairs++;
    }
    pairs += reply_slice_field(request, "since", node->since);
    pairs += reply_slice_field(request, "deprecated_since", node->deprecated_since);
    pairs += reply_argument_flags(request, node);
    if (node->children.count != 0) {
        reply_text(request, "arguments");
        reply_arguments(request, &node->children);
        pairs++;
    }
    resp_end_deferred(request->out, request->proto, head, RESP_MAP, pairs);
}

static void reply_arguments(struct request *request, const struct syntax_list *list)
{
    reply_array(request, list->count);
    for (size_t i = 0; i < list->count; i++)
        reply_argument(request, list->items[i]);
}

static uint64_t reply_doc_flags(struct request *request, const struct command *command)
{
    bool deprecated = (command->flags & COMMAND_DEPRECATED) != 0, system = (command->flags & COMMAND_SYSTEM) != 0;

    if (!deprecated && !system)
        return 0;
    reply_text(request, "doc_flags");
    reply_set(request, (uint64_t)deprecated + system);
    if (deprecated)
        reply_status(request, "deprecated");
    if (system)
        reply_status(request, "syscmd");
    return 1;
}

static uint64_t reply_history(struct request *request, const struct command *command)
{
    struct slice rest = optional_text(command->row->history), entry;
    struct resp_deferred head;
    uint64_t count = 0;

    if (rest.size == 0)
        return 0;
    reply_text(request, "history");
    head = resp_begin_deferred(request->out);
    for (; next_part(&rest, '|', &entry); count++) {
        struct slice text = entry, version = SLICE_EMPTY;

        (void)next_part(&text, '=', &version);
        reply_array(request, 2);
        reply_bulk(request, version);
        reply_bulk(request, text);
    }
    resp_end_deferred(request->out, request->proto, head, RESP_SET, count);
    return 1;
}

static uint64_t reply_syntax(struct request *request, const struct command *command)
{
    struct syntax_list list;
    bool any;

    syntax_parse(command, &list);
    any = list.count != 0;
    if (any) {
        reply_text(request, "arguments");
        reply_arguments(request, &list);
    }
    syntax_release(&list);
    return any;
}

static void reply_docs(struct request *request, const struct command *command);

static uint64_t reply_subcommand_docs(struct request *request, const struct command *command)
{
    if (command->subcommand_count == 0)
        return 0;
    reply_text(request, "subcommands");
    reply_map(request, command->subcommand_count);
    for (uint32_t i = 0; i < command->subcommand_count; i++) {
        reply_bulk(request, command->subcommands[i].full_name);
        reply_docs(request, &command->subcommands[i]);
    }
    return 1;
}

static void reply_docs(struct request *request, const struct command *command)
{
    const struct command_row *row = command->row;
    struct resp_deferred head = resp_begin_deferred(request->out);
    uint64_t pairs = 0;

    pairs += reply_slice_field(request, "summary", optional_text(row->summary));
    pairs += reply_slice_field(request, "since", optional_text(row->since));
    pairs += reply_slice_field(request, "group", optional_text(row->group));
    pairs += reply_slice_field(request, "complexity", optional_text(row->complexity));
    pairs += reply_doc_flags(request, command);
    pairs += reply_slice_field(request, "deprecated_since", optional_text(row->deprecated_since));
    pairs += reply_slice_field(request, "replaced_by", optional_text(row->replaced_by));
    pairs += reply_history(request, command);
    pairs += reply_syntax(request, command);
    pairs += reply_subcommand_docs(request, command);
    resp_end_deferred(request->out, request->proto, head, RESP_MAP, pairs);
}

static void reply_docs_entry(struct request *request, const struct command *command)
{
    reply_bulk(request, command->full_name);
    reply_docs(request, command);
}

static void cmd_command_docs(struct request *request)
{
    struct resp_deferred head;
    uint64_t pairs = 0;

    if (request->arg_count == 2) {
        reply_map(request, count_there());
        for (uint32_t i = 0; i < command_top_count(); i++) {
            if (is_there(command_top_at(i)))
                reply_docs_entry(request, command_top_at(i));
        }
        return;
    }
    head = resp_begin_deferred(request->out);
    for (uint32_t i = 2; i < request->arg_count; i++) {
        const struct command *command = command_find_full(request_arg(request, i));

        if (command != NULL) {
            reply_docs_entry(request, command);
            pairs++;
        }
    }
    resp_end_deferred(request->out, request->proto, head, RESP_MAP, pairs);
}

/* --- COMMAND LIST --- */

enum filter_kind { FILTER_NONE, FILTER_MODULE, FILTER_CATEGORY, FILTER_PATTERN };

struct filter {
    enum filter_kind kind;
    uint64_t category; /* 0: no such category, so nothing has it */
    struct slice pattern;
};

static bool filter_accepts(const struct filter *filter, const struct command *command)
{
    switch (filter->kind) {
    case FILTER_NONE:
        return true;
    case FILTER_MODULE:
        return false; /* no command comes from a module */
    case FILTER_CATEGORY:
        return (command->categories & filter->category) != 0;
    case FILTER_PATTERN:
        return glob_match(filter->pattern, command->full_name, true);
    }
    return false;
}

static bool parse_filter(struct request *request, struct filter *filter)
{
    *filter = (struct filter){.kind = FILTER_NONE};
    if (request->arg_count == 2)
        return true;
    if (request->arg_count != 5 || !request_arg_is(request, 2, "filterby"))
        return false;
    filter->pattern = request_arg(request, 4);
    if (request_arg_is(request, 3, "module")) {
        filter->kind = FILTER_MODULE;
    } else if (request_arg_is(request, 3, "aclcat")) {
        filter->kind = FILTER_CATEGORY;
        filter->category = command_category_of_word(filter->pattern);
    } else if (request_arg_is(request, 3, "pattern")) {
        filter->kind = FILTER_PATTERN;
    } else {
        return false;
    }
    return true;
}

static void cmd_command_list(struct request *request)
{
    struct filter filter;
    struct resp_deferred head;
    uint64_t count = 0;

    if (!parse_filter(request, &filter)) {
        reply_syntax_error(request);
        return;
    }
    head = resp_begin_deferred(request->out);
    for (uint32_t id = 0; id < command_count(); id++) {
        const struct command *command = command_at(id);

        if (!is_there(command) || !filter_accepts(&filter, command))
            continue;
        reply_bulk(request, command->full_name);
        count++;
    }
    resp_end_deferred(request->out, request->proto, head, RESP_ARRAY, count);
}

/* --- COMMAND GETKEYS --- */

/* The command whose words begin at the third argument. NULL: an error was replied. */
static const struct command *asked_command(struct request *request)
{
    const struct command *command = command_find(request_arg(request, 2));
    uint32_t arg_count = request->arg_count - 2;

    if (command != NULL && command->subcommand_count != 0 && arg_count > 1) {
        const struct command *sub = command_find_subcommand(command, request_arg(request, 3));

        command = sub;
    }
    if (command == NULL)
        reply_error(request, "ERR Invalid command specified");
    else if (command->key_spec_count == 0 && (command->flags & COMMAND_MOVABLE_KEYS) == 0)
        reply_error(request, "ERR The command has no key arguments");
    else if (!command_arity_fits(command, arg_count))
        reply_error(request, "ERR Invalid number of arguments specified for command");
    else
        return command;
    return NULL;
}

static bool has_only_channels(const struct command *command)
{
    if (command->row->find_keys != NULL)
        return false;
    for (uint32_t i = 0; i < command->key_spec_count; i++) {
        if ((command->key_specs[i].flags & KEY_NOT_KEY) == 0)
            return false;
    }
    return true;
}

static bool asked_keys(struct request *request, struct key_positions *positions)
{
    const struct command *command = asked_command(request);

    if (command == NULL)
        return false;
    if (has_only_channels(command)) {
        reply_error(request, "ERR The command has no key arguments");
        return false;
    }
    if (!command_keys(command, request->args + 2, request->arg_count - 2, positions)) {
        reply_error(request, "ERR Invalid arguments specified for command");
        return false;
    }
    return true;
}

static void cmd_command_getkeys(struct request *request)
{
    struct key_positions positions = {0};

    if (asked_keys(request, &positions)) {
        reply_array(request, positions.count);
        for (uint32_t i = 0; i < positions.count; i++)
            reply_bulk(request, key_position_name(request->args + 2, positions.items[i]));
    }
    key_positions_fini(&positions);
}

static void cmd_command_getkeysandflags(struct request *request)
{
    struct key_positions positions = {0};

    if (asked_keys(request, &positions)) {
        reply_array(request, positions.count);
        for (uint32_t i = 0; i < positions.count; i++) {
            reply_array(request, 2);
            reply_bulk(request, key_position_name(request->args + 2, positions.items[i]));
            reply_key_flags(request, positions.items[i].flags);
        }
    }
    key_positions_fini(&positions);
}

static void cmd_command_help(struct request *request)
{
    static const char *const lines[] = {
        "(no subcommand)",
        "    Return the information of COMMAND INFO for all commands.",
        "COUNT",
        "    Return the number of commands.",
        "LIST [FILTERBY (MODULE <name> | ACLCAT <category> | PATTERN <pattern>)]",
        "    Return the names of all commands, or of those that match the filter.",
        "INFO [<command-name> ...]",
        "    Return arity, flags, keys and categories of these commands, or of all commands.",
        "DOCS [<command-name> ...]",
        "    Return the documentation of these commands, or of all commands.",
        "GETKEYS <full-command>",
        "    Return the keys among the arguments of a command.",
        "GETKEYSANDFLAGS <full-command>",
        "    Return the keys among the arguments of a command, and how it uses each key.",
    };

    reply_help(request, lines, countof(lines));
}

#define ABOUT_COMMANDS \
    .access = ACCESS_FREE, .flags = "loading stale", .categories = "@slow @connection", .group = "server"

/* clang-format off */
static const struct command_row command_subcommands[] = {
    {.name = "count", .run = cmd_command_count, .arity = 2, ABOUT_COMMANDS, .since = "2.8.13",
     .summary = "Returns the number of commands.", .complexity = "O(1)", .syntax = "COMMAND COUNT"},
    {.name = "docs", .run = cmd_command_docs, .arity = -2, ABOUT_COMMANDS, .since = "7.0.0",
     .summary = "Returns the documentation of commands.",
     .complexity = "O(N) where N is the number of commands.", .syntax = "COMMAND DOCS [command-name ...]",
     .tips = "nondeterministic_output_order"},
    {.name = "getkeys", .run = cmd_command_getkeys, .arity = -3, ABOUT_COMMANDS, .since = "2.8.13",
     .summary = "Returns the keys among the arguments of a command.",
     .complexity = "O(N) where N is the number of words.", .syntax = "COMMAND GETKEYS command [arg ...]"},
    {.name = "getkeysandflags", .run = cmd_command_getkeysandflags, .arity = -3, ABOUT_COMMANDS, .since = "7.0.0",
     .summary = "Returns the keys among the arguments of a command, and how it uses them.",
     .complexity = "O(N) where N is the number of words.", .syntax = "COMMAND GETKEYSANDFLAGS command [arg ...]"},
    {.name = "help", .run = cmd_command_help, .arity = 2, ABOUT_COMMANDS, .since = "5.0.0",
     .summary = "Explains the subcommands.", .complexity = "O(1)", .syntax = "COMMAND HELP"},
    {.name = "info", .run = cmd_command_info, .arity = -2, ABOUT_COMMANDS, .since = "2.8.13",
     .summary = "Returns information about some commands.",
     .complexity = "O(N) where N is the number of commands.", .syntax = "COMMAND INFO [command-name ...]",
     .history = "7.0.0=Without a name it tells all.", .tips = "nondeterministic_output_order"},
    {.name = "list", .run = cmd_command_list, .arity = -2, ABOUT_COMMANDS, .since = "7.0.0",
     .summary = "Returns the names of commands.", .complexity = "O(N) where N is the number of commands.",
     .syntax = "COMMAND LIST [FILTERBY (MODULE module-name|ACLCAT category|PATTERN pattern)]",
     .tips = "nondeterministic_output_order"},
    {0},
};
/* clang-format on */

/* clang-format off */
const struct command_row command_commands[] = {
    {.name = "command", .run = cmd_command, .arity = -1, ABOUT_COMMANDS, .since = "2.8.13",
     .summary = "Returns information about all commands.",
     .complexity = "O(N) where N is the number of commands.", .syntax = "COMMAND [subcommand [arg ...]]",
     .tips = "nondeterministic_output_order", .subcommands = command_subcommands},
    {0},
};
/* clang-format on */
