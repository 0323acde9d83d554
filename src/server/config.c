/* The rows of all folders in one list, and the three ways values get in: what is read at start, CONFIG SET, and a
 * caller in the program. CONFIG REWRITE is config_rewrite.c, reading files and the command line config_load.c. */
#include "server/config.h"

#include "base/assert.h"
#include "base/glob.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "server/config_priv.h"
#include "server/options.h"
#include "server/options_accepted.h"
#include "server/options_process.h"
#include "server/protect.h"
#include "server/request.h"

#include <stdio.h>
#include <string.h>

struct config_state config_state; /* global: the configuration; written at start and in exclusive sections */

/* --- setup --- */

static void add_row(const struct option_row *row)
{
    struct config_state *state = &config_state;

    if (state->row_count == state->row_capacity) {
        state->row_capacity = state->row_capacity == 0 ? 256 : state->row_capacity * 2;
        state->rows = mem_realloc(state->rows, state->row_capacity * sizeof(*state->rows));
    }
    state->rows[state->row_count++] = (struct config_row){.row = row};
    option_set_preset(row);
}

struct config_row *config_find_row(struct slice name)
{
    for (size_t i = 0; i < config_state.row_count; i++) {
        if (option_is_named(config_state.rows[i].row, name))
            return &config_state.rows[i];
    }
    return NULL;
}

void config_add_rows(const struct option_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (config_find_row(slice_from_text(rows[i].name)) != NULL)
            panic("option '%s' is declared twice", rows[i].name);
        add_row(&rows[i]);
    }
}

void config_add_accepted(void)
{
    size_t count;
    const struct option_row *rows = options_accepted(&count);

    for (size_t i = 0; i < count; i++) {
        /* Once a part of the program has such an option, its row is the one. */
        if (config_find_row(slice_from_text(rows[i].name)) == NULL)
            add_row(&rows[i]);
    }
}

void config_setup(void)
{
    assert(config_state.rows == NULL);
    config_add_rows(server_options, server_option_count);
    config_add_rows(process_options, process_option_count);
}

void config_teardown(void)
{
    struct config_state *state = &config_state;

    for (size_t i = 0; i < state->row_count; i++) {
        option_fini(state->rows[i].row);
        mem_free(state->rows[i].hooks);
    }
    options_teardown();
    mem_free(state->rows);
    mem_free(state->reset_hooks);
    mem_free(state->directives);
    mem_free(state->file_path);
    mem_free(state->executable_path);
    memset(state, 0, sizeof(*state));
}

void config_on_change(const char *option_name, config_apply_fn apply)
{
    struct config_row *row = config_find_row(slice_from_text(option_name));

    if (row == NULL)
        panic("no option '%s'", option_name);
    row->hooks = mem_realloc(row->hooks, (row->hook_count + 1) * sizeof(*row->hooks));
    row->hooks[row->hook_count++] = apply;
}

void config_on_reset_stat(void (*reset)(void))
{
    struct config_state *state = &config_state;

    state->reset_hooks = mem_realloc(state->reset_hooks, (state->reset_hook_count + 1) * sizeof(*state->reset_hooks));
    state->reset_hooks[state->reset_hook_count++] = reset;
}

void config_on_directive(const struct config_directive *directive)
{
    struct config_state *state = &config_state;

    state->directives = mem_realloc(state->directives, (state->directive_count + 1) * sizeof(*state->directives));
    state->directives[state->directive_count++] = directive;
}

/* --- looking --- */

const struct option_row *config_find(struct slice name)
{
    const struct config_row *found = config_find_row(name);

    return found != NULL ? found->row : NULL;
}

bool config_get_text(const char *name, struct buffer *text)
{
    const struct option_row *row = config_find(slice_from_text(name));

    if (row == NULL)
        return false;
    option_format(row, text);
    return true;
}

const char *config_file_path(void)
{
    return config_state.file_path != NULL ? config_state.file_path : "";
}

const char *config_executable_path(void)
{
    return config_state.executable_path != NULL ? config_state.executable_path : "";
}

char *const *config_arguments(int *count)
{
    *count = config_state.arg_count;
    return config_state.args;
}

void config_log_remarks(void)
{
    for (size_t i = 0; i < config_state.row_count; i++) {
        const struct config_row *row = &config_state.rows[i];
        const char *reason = options_accepted_reason(row->row);

        if (row->given && reason != NULL && !option_is_preset(row->row))
            log_notice("'%s' is accepted but has no effect: %s", row->row->name, reason);
    }
}

/* --- changing several options, all or none --- */

struct setting {
    struct config_row *row;
    struct slice name;          /* as the client wrote it */
    struct option_value value;  /* the new one; once stored, the old one */
    bool stored, changed;
};

struct change_set {
    struct setting *settings;
    size_t count;
    struct slice blamed;        /* the name in the error */
    char error[OPTION_ERROR_SPACE];
};

static bool blame(struct change_set *set, const struct setting *setting, const char *reason)
{
    set->blamed = setting->name;
    if (reason != set->error)
        snprintf(set->error, sizeof(set->error), "%s", reason);
    return false;
}

static bool parse_settings(struct change_set *set, const struct slice *texts, size_t stride)
{
    for (size_t i = 0; i < set->count; i++) {
        struct setting *setting = &set->settings[i];

        if (!option_parse(setting->row->row, &texts[i * stride], 1, &setting->value, set->error, sizeof(set->error)))
            return blame(set, setting, set->error);
    }
    return true;
}

static bool store_settings(struct change_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        struct setting *setting = &set->settings[i];
        enum option_result result = option_store(setting->row->row, &setting->value, set->error, sizeof(set->error));

        if (result == OPTION_FAILED)
            return blame(set, setting, set->error);
        setting->stored = true;
        setting->changed = result == OPTION_CHANGED || (setting->row->row->flags & OPTION_VOLATILE) != 0;
    }
    return true;
}

/* Has an earlier setting of this set already called the function? */
static bool was_called(const struct change_set *set, size_t until, config_apply_fn apply)
{
    for (size_t i = 0; i < until; i++) {
        const struct config_row *row = set->settings[i].row;

        for (size_t k = 0; set->settings[i].changed && k < row->hook_count; k++) {
            if (row->hooks[k] == apply)
                return true;
        }
    }
    return false;
}

static const char *apply_setting(const struct change_set *set, size_t index)
{
    const struct config_row *row = set->settings[index].row;
    const char *reason = row->row->apply != NULL ? row->row->apply(row->row) : NULL;

    for (size_t i = 0; reason == NULL && i < row->hook_count; i++) {
        if (!was_called(set, index, row->hooks[i]))
            reason = row->hooks[i](row->row);
    }
    return reason;
}

static bool apply_settings(struct change_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const char *reason = set->settings[i].changed ? apply_setting(set, i) : NULL;

        if (reason != NULL)
            return blame(set, &set->settings[i], reason);
    }
    return true;
}

static void undo_settings(struct change_set *set, bool applied)
{
    char error[OPTION_ERROR_SPACE];

    for (size_t i = set->count; i-- > 0;) {
        struct setting *setting = &set->settings[i];

        if (setting->stored &&
            option_store(setting->row->row, &setting->value, error, sizeof(error)) == OPTION_FAILED)
            log_warning("the old value of '%s' could not be set back: %s", setting->row->row->name, error);
    }
    for (size_t i = 0; applied && i < set->count; i++) {
        const char *reason = set->settings[i].changed ? apply_setting(set, i) : NULL;

        if (reason != NULL)
            log_warning("going back to the old value of '%s': %s", set->settings[i].row->row->name, reason);
    }
}

/* texts[i * stride] is the new value of settings[i]. */
static bool change_all(struct change_set *set, const struct slice *texts, size_t stride)
{
    bool done = parse_settings(set, texts, stride);

    if (done) {
        bool stored = store_settings(set);

        done = stored && apply_settings(set);
        if (!done)
            undo_settings(set, stored);
    }
    for (size_t i = 0; i < set->count; i++)
        option_value_release(&set->settings[i].value);
    return done;
}

bool config_set_text(const char *name, struct slice text, char *error, size_t error_size)
{
    struct setting setting = {.name = slice_from_text(name)};
    struct change_set set = {.settings = &setting, .count = 1};

    setting.row = config_find_row(setting.name);
    if (setting.row == NULL) {
        snprintf(error, error_size, "no such option");
        return false;
    }
    if (change_all(&set, &text, 1))
        return true;
    snprintf(error, error_size, "%s", set.error);
    return false;
}

/* --- CONFIG SET --- */

static bool is_repeated(const struct change_set *set, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (set->settings[i].row == set->settings[index].row)
            return true;
    }
    return false;
}

/* False: it has replied or blamed a setting. */
static bool find_settings(struct request *request, struct change_set *set, bool *replied)
{
    *replied = false;
    for (size_t i = 0; i < set->count; i++) {
        struct setting *setting = &set->settings[i];

        setting->name = request_arg(request, (uint32_t)(2 + 2 * i));
        setting->row = config_find_row(setting->name);
        if (setting->row == NULL) {
            reply_errorf(request, "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
                         (int)setting->name.size, setting->name.data);
            *replied = true;
            return false;
        }
        if ((setting->row->row->flags & OPTION_MUTABLE) == 0)
            return blame(set, setting, "can't set immutable config");
        if ((setting->row->row->flags & OPTION_PROTECTED) != 0 && !protect_allows_configs(request->client))
            return blame(set, setting, "can't set protected config");
        if (is_repeated(set, i))
            return blame(set, setting, "duplicate parameter");
    }
    return true;
}

static void redact_secrets(struct request *request)
{
    for (uint32_t i = 2; i + 1 < request->arg_count; i += 2) {
        const struct option_row *row = config_find(request_arg(request, i));

        if (row != NULL && (row->flags & OPTION_SENSITIVE) != 0)
            request_redact(request, i + 1);
    }
}

static void cmd_config_set(struct request *request)
{
    struct change_set set = {.count = (request->arg_count - 2) / 2};
    bool replied, done;

    if (request->arg_count % 2 != 0) {
        reply_syntax_error(request);
        return;
    }
    redact_secrets(request);
    set.settings = mem_alloc_zero(set.count * sizeof(*set.settings));
    done = find_settings(request, &set, &replied) && change_all(&set, &request->args[3], 2);
    if (done)
        reply_ok(request);
    else if (!replied)
        reply_errorf(request, "ERR CONFIG SET failed (possibly related to argument '%.*s')%s%s",
                     (int)set.blamed.size, set.blamed.data, set.error[0] != '\0' ? " - " : "", set.error);
    mem_free(set.settings);
}

/* --- CONFIG GET --- */

static void reply_pair(struct request *request, struct slice name, const struct option_row *row)
{
    struct buffer text = {0};

    option_format(row, &text);
    reply_bulk(request, name);
    reply_bulk(request, text.size == 0 ? SLICE("") : buffer_slice(&text));
    buffer_fini(&text);
}

/* Which names of a row have been printed by this CONFIG GET. */
enum { PRINTED_NAME = 1, PRINTED_ALIAS = 2 };

static unsigned print_exact(struct request *request, struct slice name, uint8_t *printed)
{
    for (size_t i = 0; i < config_state.row_count; i++) {
        const struct option_row *row = config_state.rows[i].row;
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

    for (size_t i = 0; i < config_state.row_count; i++) {
        const struct option_row *row = config_state.rows[i].row;
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
    uint8_t *printed = mem_alloc_zero(config_state.row_count + 1);
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
    for (size_t i = 0; i < config_state.reset_hook_count; i++)
        config_state.reset_hooks[i]();
    reply_ok(request);
}

static void cmd_config_rewrite(struct request *request)
{
    const char *reason;

    if (config_state.file_path == NULL) {
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
