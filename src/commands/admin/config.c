/* CONFIG: what server/config/config.h does, for clients. */
#include "base/array.h"
#include "commands/shared/families.h"

#include "base/compiler.h"
#include "base/glob.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/words.h"
#include "server/config/config.h"
#include "server/core/request.h"
#include "server/durable/loading.h"
#include "server/run/protect.h"
#include "server/run/rendezvous.h"

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

/* Some options reach the workers by mail. */
static void reply_changed(struct request *request)
{
    reply_ok(request);
    rendezvous_begin(request->client, RENDEZVOUS_ALL, RENDEZVOUS_COMMANDS);
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
        reply_changed(request);
    else if (refusal.is_loading)
        reply_error(request, loading_denial);
    else if (refusal.is_unknown)
        reply_errorf(request, "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
                     (int)refusal.name.size, refusal.name.data);
    else
        reply_errorf(request, "ERR CONFIG SET failed (possibly related to argument '%.*s')%s%s", (int)refusal.name.size,
                     refusal.name.data, refusal.reason[0] != '\0' ? " - " : "", refusal.reason);
}

/* --- CONFIG GET --- */

/* The values for one reply of CONFIG GET: all texts in one buffer, as of one moment. */
struct finding {
    const struct option_row *row;
    struct slice name; /* as asked for */
    size_t text_end;
};

struct findings {
    struct finding *items;
    size_t count, capacity;
    uint8_t *found; /* by row: which of its names */
    struct buffer texts;
};
enum { FOUND_NAME = 1, FOUND_ALIAS = 2 };

static void find_value(struct findings *findings, struct slice name, const struct option_row *row)
{
    option_format(row, &findings->texts);
    *ARRAY_PUSH(findings) = (struct finding){row, name, findings->texts.size};
}

static void reply_findings(struct request *request, const struct findings *findings)
{
    size_t begin = 0;

    resp_write_map(request->out, request->proto, findings->count);
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        struct slice text = finding->text_end == begin
                                ? SLICE("")
                                : slice_make(findings->texts.data + begin, finding->text_end - begin);

        reply_bulk(request, finding->name);
        reply_bulk(request, text);
        begin = finding->text_end;
    }
}

static void find_exact(struct findings *findings, struct slice name)
{
    for (size_t i = 0; i < config_row_count(); i++) {
        const struct option_row *row = config_row_at(i);
        uint8_t mark;

        if (!option_is_named(row, name))
            continue;
        mark = slice_equal_text_nocase(name, row->name) ? FOUND_NAME : FOUND_ALIAS;
        if ((findings->found[i] & mark) == 0)
            find_value(findings, name, row);
        findings->found[i] |= mark;
        return;
    }
}

static void find_matching(struct findings *findings, struct slice pattern)
{
    for (size_t i = 0; i < config_row_count(); i++) {
        const struct option_row *row = config_row_at(i);
        struct slice name = slice_from_text(row->name);
        struct slice alias = slice_from_text(row->alias != NULL ? row->alias : "");

        if (row->flags & OPTION_HIDDEN)
            continue;
        if (!(findings->found[i] & FOUND_NAME) && glob_match(pattern, name, true)) {
            findings->found[i] |= FOUND_NAME;
            find_value(findings, name, row);
        }
        if (row->alias != NULL && !(findings->found[i] & FOUND_ALIAS) && glob_match(pattern, alias, true)) {
            findings->found[i] |= FOUND_ALIAS;
            find_value(findings, alias, row);
        }
    }
}

static void find_all(const struct request *request, struct findings *findings)
{
    findings->count = 0;
    buffer_clear(&findings->texts);
    memset(findings->found, 0, config_row_count());
    for (uint32_t i = 2; i < request->arg_count; i++) {
        struct slice pattern = request_arg(request, i);

        if (glob_has_wildcard(pattern))
            find_matching(findings, pattern);
        else
            find_exact(findings, pattern);
    }
}

static void cmd_config_get(struct request *request)
{
    struct findings findings = {.found = mem_alloc_zero(config_row_count() + 1)};
    uint64_t version;

    do {
        version = config_version();
        find_all(request, &findings);
    } while (config_version() != version); /* somebody has changed options meanwhile */
    reply_findings(request, &findings);
    buffer_fini(&findings.texts);
    ARRAY_FINI(&findings);
    mem_free(findings.found);
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
        log_warning("CONFIG REWRITE executed with success.");
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
        "    Return the options whose names match a glob-style pattern, with their values.",
        "SET <option> <value> [<option> <value> ...]",
        "    Change options. If one cannot be changed, none is.",
        "RESETSTAT",
        "    Reset the counters of INFO.",
        "REWRITE",
        "    Write the current values to the configuration file.",
    };

    reply_help(request, lines, countof(lines));
}

/* clang-format off */
static const struct command_row config_subcommands[] = {
    {.name = "get", .run = cmd_config_get, .arity = -3, .access = ACCESS_FREE,
     .flags = "admin noscript loading stale", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "2.0.0", .summary = "Returns options with their values.",
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
     .since = "2.0.0", .summary = "Resets the counters of INFO.", .complexity = "O(1)",
     .syntax = "CONFIG RESETSTAT", .tips = "request_policy:all_nodes response_policy:all_succeeded"},
    {.name = "rewrite", .run = cmd_config_rewrite, .arity = 2, .access = ACCESS_EXCLUSIVE,
     .flags = "admin noscript loading stale", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "2.8.0", .summary = "Writes the current options to the configuration file.", .complexity = "O(1)",
     .syntax = "CONFIG REWRITE", .tips = "request_policy:all_nodes response_policy:all_succeeded"},
    {.name = "help", .run = cmd_config_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
     .categories = "@slow", .group = "server", .since = "5.0.0", .summary = "Explains the subcommands.",
     .complexity = "O(1)", .syntax = "CONFIG HELP"},
    {0},
};
/* clang-format on */

/* clang-format off */
const struct command_row config_commands[] = {
    {.name = "config", .arity = -2, .access = ACCESS_FREE, .flags = "", .categories = "@slow", .group = "server",
     .since = "2.0.0", .summary = "Container for commands about the configuration.",
     .complexity = "Depends on the subcommand.", .syntax = "CONFIG subcommand [arg ...]",
     .subcommands = config_subcommands},
    {0},
};
/* clang-format on */
