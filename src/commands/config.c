/* CONFIG: what server/config.h does, for clients. */
#include "commands/families.h"

#include "base/compiler.h"
#include "base/glob.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/words.h"
#include "server/config.h"
#include "server/loading.h"
#include "server/protect.h"
#include "server/request.h"

/* --- CONFIG SET --- */

static void redact_secrets(struct request *request)
{
    for (uint32_t i = 2; i + 1 < request->arg_count; i += 2) {
        const struct option_row *row = config_find(request_arg(request, i));

        if (row != NULL && (row->flags & OPTION_SENSITIVE) != 0)
            request_redact(request, i + 1);
    }
}

/* All words after the name of such an option are its value: no other can be set with it. */
static bool sets_array(const struct request *request)
{
    const struct option_row *row = config_find(request_arg(request, 2));

    return row != NULL && (row->flags & OPTION_ARRAY) != 0 && request->arg_count > 4;
}

static bool set_array(struct request *request, struct config_refusal *refusal)
{
    struct slice pair[2] = {request_arg(request, 2)};
    struct buffer line = {0};
    bool done;

    for (uint32_t i = 3; i < request->arg_count; i++) {
        words_quote(&line, request_arg(request, i));
        buffer_append_char(&line, ' ');
    }
    pair[1] = buffer_slice(&line);
    done = config_change(pair, 1, protect_allows_configs(request->client), refusal);
    buffer_fini(&line);
    return done;
}

static bool set_pairs(struct request *request, struct config_refusal *refusal)
{
    return config_change(&request->args[2], (request->arg_count - 2) / 2, protect_allows_configs(request->client),
                         refusal);
}

static void cmd_config_set(struct request *request)
{
    struct config_refusal refusal = {.is_loading = false};
    const bool is_array = sets_array(request);

    if (request->arg_count % 2 != 0 && !is_array) {
        reply_syntax_error(request);
        return;
    }
    redact_secrets(request);
    if (is_array ? set_array(request, &refusal) : set_pairs(request, &refusal))
        reply_ok(request);
    else if (refusal.is_loading)
        reply_error(request, loading_denial);
    else if (refusal.is_unknown)
        reply_errorf(request, "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
                     (int)refusal.name.size, refusal.name.data);
    else
        reply_errorf(request, "ERR CONFIG SET failed (possibly related to argument '%.*s')%s%s",
                     (int)refusal.name.size, refusal.name.data, refusal.reason[0] != '\0' ? " - " : "",
                     refusal.reason);
}

/* --- CONFIG GET --- */

static void reply_words(struct request *request, struct slice text)
{
    struct words words = {0};

    if (!words_split(text, &words))
        panic("an option's own text has unbalanced quotes");
    reply_array(request, words.count);
    for (size_t i = 0; i < words.count; i++)
        reply_bulk(request, words.words[i]);
    words_fini(&words);
}

static void reply_pair(struct request *request, struct slice name, const struct option_row *row)
{
    struct buffer text = {0};

    option_format(row, &text);
    reply_bulk(request, name);
    if ((row->flags & OPTION_ARRAY) != 0)
        reply_words(request, buffer_slice(&text));
    else
        reply_bulk(request, text.size == 0 ? SLICE("") : buffer_slice(&text));
    buffer_fini(&text);
}

/* Which names of a row have been printed by this CONFIG GET. */
enum { PRINTED_NAME = 1, PRINTED_ALIAS = 2 };

static unsigned print_exact(struct request *request, struct slice name, uint8_t *printed)
{
    for (size_t i = 0; i < config_row_count(); i++) {
        const struct option_row *row = config_row_at(i);
        uint8_t mark;

        if (!option_is_named(row, name))
            continue;
        mark = slice_equal_text_nocase(name, row->name) ? PRINTED_NAME : PRINTED_ALIAS;
        if (printed[i] & mark)
            return 0;
        printed[i] |= mark;
        reply_pair(request, name, row);
        return 1;
    }
    return 0;
}

static unsigned print_matching(struct request *request, struct slice pattern, uint8_t *printed)
{
    unsigned pairs = 0;

    for (size_t i = 0; i < config_row_count(); i++) {
        const struct option_row *row = config_row_at(i);
        struct slice name = slice_from_text(row->name);
        struct slice alias = slice_from_text(row->alias != NULL ? row->alias : "");

        if (row->flags & OPTION_HIDDEN)
            continue;
        if (!(printed[i] & PRINTED_NAME) && glob_match(pattern, name, true)) {
            printed[i] |= PRINTED_NAME;
            reply_pair(request, name, row);
            pairs++;
        }
        if (row->alias != NULL && !(printed[i] & PRINTED_ALIAS) && glob_match(pattern, alias, true)) {
            printed[i] |= PRINTED_ALIAS;
            reply_pair(request, alias, row);
            pairs++;
        }
    }
    return pairs;
}

static void cmd_config_get(struct request *request)
{
    uint8_t *printed = mem_alloc_zero(config_row_count() + 1);
    struct resp_deferred head = resp_begin_deferred(request->out);
    uint64_t pairs = 0;

    for (uint32_t i = 2; i < request->arg_count; i++) {
        struct slice pattern = request_arg(request, i);

        pairs += glob_has_wildcard(pattern) ? print_matching(request, pattern, printed)
                                            : print_exact(request, pattern, printed);
    }
    resp_end_deferred(request->out, request->proto, head, RESP_MAP, pairs);
    mem_free(printed);
}

/* --- the others --- */

static void cmd_config_resetstat(struct request *request)
{
    config_reset_stat();
    reply_ok(request);
}

static void cmd_config_rewrite(struct request *request)
{
    const char *reason;

    if (config_file_path()[0] == '\0') {
        reply_error(request, "ERR The server is running without a config file");
        return;
    }
    reason = config_rewrite();
    if (reason == NULL) {
        log_notice("CONFIG REWRITE executed with success.");
        reply_ok(request);
        return;
    }
    log_warning("CONFIG REWRITE failed: %s", reason);
    reply_errorf(request, "ERR Rewriting config file: %s", reason);
}

static void cmd_config_help(struct request *request)
{
    static const char *const lines[] = {
        "GET <pattern> [<pattern> ...]",
        "    Options whose name matches a glob-like pattern, with their values.",
        "SET <option> <value> [<option> <value> ...]",
        "    Change options: all of them, or none if one cannot be changed.",
        "RESETSTAT",
        "    Start the counters of INFO anew.",
        "REWRITE",
        "    Write the present values into the configuration file.",
    };

    reply_help(request, lines, countof(lines));
}

static const struct command_row config_subcommands[] = {
    {.name = "get", .run = cmd_config_get, .arity = -3, .access = ACCESS_EXCLUSIVE,
     .flags = "admin noscript loading stale", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "2.0.0", .summary = "Returns options and their values.",
     .complexity = "O(N) where N is the number of options that are looked for.",
     .syntax = "CONFIG GET parameter [parameter ...]",
     .history = "7.0.0=Several patterns in one call."},
    {.name = "set", .run = cmd_config_set, .arity = -4, .access = ACCESS_EXCLUSIVE,
     .flags = "admin noscript loading stale", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "2.0.0", .summary = "Changes options while the server runs.",
     .complexity = "O(N) where N is the number of options given.",
     .syntax = "CONFIG SET parameter value [parameter value ...]",
     .history = "7.0.0=Several options in one call, all or none.",
     .tips = "request_policy:all_nodes response_policy:all_succeeded"},
    {.name = "resetstat", .run = cmd_config_resetstat, .arity = 2, .access = ACCESS_EXCLUSIVE,
     .flags = "admin noscript loading stale", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "2.0.0", .summary = "Starts the counters that INFO reports anew.", .complexity = "O(1)",
     .syntax = "CONFIG RESETSTAT"},
    {.name = "rewrite", .run = cmd_config_rewrite, .arity = 2, .access = ACCESS_EXCLUSIVE,
     .flags = "admin noscript loading stale", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "2.8.0", .summary = "Writes the present options into the configuration file.", .complexity = "O(1)",
     .syntax = "CONFIG REWRITE"},
    {.name = "help", .run = cmd_config_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
     .categories = "@slow", .group = "server", .since = "5.0.0", .summary = "Explains the subcommands.",
     .complexity = "O(1)", .syntax = "CONFIG HELP"},
    {0},
};

const struct command_row config_commands[] = {
    {.name = "config", .arity = -2, .access = ACCESS_FREE, .flags = "", .categories = "@slow", .group = "server",
     .since = "2.0.0", .summary = "A container of commands about the configuration.",
     .complexity = "Depends on the subcommand.", .syntax = "CONFIG subcommand [arg ...]",
     .subcommands = config_subcommands},
    {0},
};
