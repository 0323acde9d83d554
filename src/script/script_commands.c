/* EVAL and related commands, SCRIPT. */
#include "base/gate.h"
#include "base/thread.h"
#include "script/debug_session.h"
#include "script/function_host.h"
#include "script/functions.h"
#include "script/script_api.h"
#include "script/script_busy.h"
#include "script/script_host.h"
#include "script/script_settings.h"
#include "script/script_watch.h"
#include "script/scripts.h"
#include "server/durable/libraries.h"
#include "server/pubsub/monitor.h"

static bool read_key_count(struct request *request, uint32_t *key_count)
{
    int64_t count;

    if (!request_arg_i64(request, 2, &count))
        return false;
    if (count > (int64_t)request->arg_count - 3)
        reply_error(request, "ERR Number of keys can't be greater than number of args");
    else if (count < 0)
        reply_error(request, "ERR Number of keys can't be negative");
    else
        *key_count = (uint32_t)count;
    return count >= 0 && count <= (int64_t)request->arg_count - 3;
}

static struct script_host *host_of(struct request *request)
{
    struct script_host *host = script_host_here(request->worker);

    if (host == NULL)
        reply_error(request, "ERR not enough memory for scripts");
    return host;
}

/* The script with this text, new or not; acquired. NULL: it has replied. */
static struct script *load(struct request *request, struct script_host *host, struct slice source, bool stays,
                           char sha[SCRIPT_SHA_DIGITS + 1])
{
    struct buffer error = {0};
    struct script *script;
    struct slice body;
    uint32_t flags;
    char text[256];

    script_sha(source, sha);
    script = stays ? NULL : script_cache_find(slice_make(sha, SCRIPT_SHA_DIGITS));
    if (script != NULL)
        return script;
    if (!script_read_shebang(source, &flags, &body, text, sizeof(text))) {
        reply_error(request, text);
        return NULL;
    }
    if (script_host_check(host, body, &error)) {
        script = script_cache_add(slice_make(sha, SCRIPT_SHA_DIGITS), source, flags, stays);
    } else {
        buffer_append_text(&error, "");
        reply_errorf(request, "%.*s", (int)error.size, error.data);
    }
    buffer_fini(&error);
    return script;
}

static void eval(struct request *request, bool read_only)
{
    struct script_host *host = host_of(request);
    struct script *script, *loaded = NULL;
    char sha[SCRIPT_SHA_DIGITS + 1];
    uint32_t key_count;
    bool debugs;

    monitor_note_first(request);
    if (host == NULL || !read_key_count(request, &key_count))
        return;
    debugs = debug_session_is_wanted(request);
    if (debugs && !debug_session_begin(host, request, request_arg(request, 1)))
        return;
    script = script_host_find_source(host, request_arg(request, 1));
    if (script == NULL)
        script = loaded = load(request, host, request_arg(request, 1), false, sha);
    if (script != NULL)
        script_host_run_script(host, request, script, read_only, key_count);
    script_release(&loaded);
    if (debugs)
        debug_session_end(host, request);
}

static const char no_script[] = "NOSCRIPT No matching script. Please use EVAL.";

static void evalsha(struct request *request, bool read_only)
{
    struct script_host *host = host_of(request);
    struct script *script, *found = NULL;
    uint32_t key_count;

    monitor_note_first(request);
    if (debug_session_is_wanted(request)) {
        reply_error(request, "ERR Please use EVAL instead of EVALSHA for debugging");
        return;
    }
    if (request_arg(request, 1).size != SCRIPT_SHA_DIGITS) {
        reply_error(request, no_script);
        return;
    }
    if (host == NULL || !read_key_count(request, &key_count))
        return;
    script = script_host_find(host, request_arg(request, 1));
    if (script == NULL)
        script = found = script_cache_find(request_arg(request, 1));
    if (script != NULL)
        script_host_run_script(host, request, script, read_only, key_count);
    else
        reply_error(request, no_script);
    script_release(&found);
}

static uint32_t eval_flags(uint32_t flags, const struct slice *args, uint32_t arg_count)
{
    struct slice body;
    uint32_t declared;
    char error[256];

    if (arg_count < 2 || !script_read_shebang(args[1], &declared, &body, error, sizeof(error)))
        return flags; /* it will not run */
    return script_command_flags(flags, declared);
}

static uint32_t evalsha_flags(uint32_t flags, const struct slice *args, uint32_t arg_count)
{
    struct script *script = arg_count > 1 ? script_cache_find(args[1]) : NULL;

    flags = script != NULL ? script_command_flags(flags, script->flags) : flags;
    script_release(&script);
    return flags;
}

/* Where this worker has compiled the script, as in most requests, it takes neither a lock nor a look at the text. */
static bool evalsha_keeps(const struct slice *args, uint32_t arg_count)
{
    struct script_host *host = script_host_of_thread();
    struct script *script = host != NULL && arg_count > 1 ? script_host_find(host, args[1]) : NULL;
    bool keeps;

    if (script != NULL)
        return script->keeps_to_keys;
    script = arg_count > 1 ? script_cache_find(args[1]) : NULL;
    keeps = script != NULL && script->keeps_to_keys;
    script_release(&script);
    return keeps;
}

static bool eval_keeps(const struct slice *args, uint32_t arg_count)
{
    struct script_host *host = script_host_of_thread();
    const struct script *script = host != NULL && arg_count > 1 ? script_host_find_source(host, args[1]) : NULL;

    return script != NULL ? script->keeps_to_keys : arg_count > 1 && script_keeps_to_keys(args[1]);
}

static void cmd_eval(struct request *request)
{
    eval(request, false);
}

static void cmd_eval_ro(struct request *request)
{
    eval(request, true);
}

static void cmd_evalsha(struct request *request)
{
    evalsha(request, false);
}

static void cmd_evalsha_ro(struct request *request)
{
    evalsha(request, true);
}

/* ------------------------------------------------------------------------------------------------------- SCRIPT -- */

static void cmd_script_load(struct request *request)
{
    struct script_host *host = host_of(request);
    char sha[SCRIPT_SHA_DIGITS + 1];
    struct script *script;

    if (host == NULL)
        return;
    script = load(request, host, request_arg(request, 2), true, sha);
    if (script != NULL)
        reply_text(request, sha);
    script_release(&script);
}

static void cmd_script_exists(struct request *request)
{
    reply_array(request, request->arg_count - 2);
    for (uint32_t i = 2; i < request->arg_count; i++) {
        struct script *script = script_cache_find(request_arg(request, i));

        reply_int(request, script != NULL);
        script_release(&script);
    }
}

static void cmd_script_show(struct request *request)
{
    struct script *script = script_cache_find(request_arg(request, 2));

    if (script != NULL)
        reply_bulk(request, slice_make(script->source, script->source_size));
    else
        reply_error(request, "NOSCRIPT No matching script.");
    script_release(&script);
}

/* Either way a script that runs in another worker ends first. */
static void cmd_script_flush(struct request *request)
{
    if (request->arg_count > 3 ||
        (request->arg_count == 3 && !request_arg_is(request, 2, "sync") && !request_arg_is(request, 2, "async"))) {
        reply_error(request, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
        return;
    }
    script_cache_flush();
    script_settings_reset();
    reply_ok(request);
}

static void cmd_script_kill(struct request *request)
{
    script_busy_kill(request, false);
}

static void cmd_script_help(struct request *request)
{
    static const char *const lines[] = {
        "DEBUG (YES|SYNC|NO)",
        "    Set the debug mode of this connection's scripts.",
        "EXISTS <sha1> [<sha1> ...]",
        "    Check which of these scripts are in the cache.",
        "FLUSH [ASYNC|SYNC]",
        "    Remove all scripts from the cache.",
        "KILL",
        "    End the running script if it has not written.",
        "LOAD <script>",
        "    Load a script into the cache without running it.",
        "SHOW <sha1>",
        "    Show the text of a script in the cache.",
    };

    reply_help(request, lines, countof(lines));
}

static void cmd_script(struct request *request)
{
    reply_subcommand_error(request);
}

static void read_facts(struct script_facts *facts)
{
    struct script_cache_facts cached;
    struct functions_facts functions;

    script_cache_facts(&cached);
    functions_facts(&functions);
    facts->functions = functions.functions;
    facts->libraries = functions.libraries;
    facts->functions_bytes = functions.bytes;
    facts->vm_bytes = script_vms_bytes();
    facts->cached_scripts = cached.count;
    facts->cached_scripts_bytes = cached.bytes;
    facts->evicted_scripts = cached.evicted;
}

static const struct libraries_keeper keeper = {
    .facts = read_facts,
    .each = functions_each_source,
    .load = function_host_load_source,
    .flush = functions_flush,
    .each_name = functions_each_name,
    .find = functions_find_source,
};

void scripts_setup_options(void)
{
    thread_assert_main();
    script_busy_setup_options();
}

void scripts_setup(void)
{
    gate_assert_main_alone();
    script_cache_setup();
    functions_setup();
    script_busy_setup();
    script_api_setup();
    script_settings_setup();
    libraries_provide(&keeper);
}

void scripts_teardown(void)
{
    gate_assert_main_alone();
    script_watch_teardown();
    script_host_teardown();
    functions_teardown();
    script_cache_teardown();
}

#define NOTE_WRITES "The script may read, change and make every key it is given"
#define NOTE_READS "The script may read every key it is given"

/* clang-format off */
static const struct command_row script_subcommands[] = {
    {.name = "debug", .run = debug_session_set, .arity = 3, .access = ACCESS_FREE, .flags = "noscript",
     .categories = "@slow @scripting", .group = "scripting", .since = "3.2.0",
     .summary = "Sets the debug mode of the scripts of this connection.", .complexity = "O(1)",
     .syntax = "SCRIPT DEBUG (YES|SYNC|NO)"},
    {.name = "exists", .run = cmd_script_exists, .arity = -3, .access = ACCESS_FREE, .flags = "noscript",
     .categories = "@slow @scripting", .group = "scripting", .since = "2.6.0",
     .summary = "Checks which scripts are in the cache.", .complexity = "O(N), N the number of scripts asked for",
     .syntax = "SCRIPT EXISTS sha1 [sha1 ...]", .tips = "request_policy:all_shards response_policy:agg_logical_and"},
    {.name = "flush", .run = cmd_script_flush, .arity = -2, .access = ACCESS_FREE, .flags = "noscript",
     .categories = "@slow @scripting", .group = "scripting", .since = "2.6.0",
     .summary = "Removes all scripts from the cache.", .complexity = "O(N), N the number of scripts in the cache",
     .syntax = "SCRIPT FLUSH [ASYNC|SYNC]", .arg_since = "async:6.2.0",
     .history = "6.2.0=The words ASYNC and SYNC.",
     .tips = "request_policy:all_nodes response_policy:all_succeeded"},
    {.name = "help", .run = cmd_script_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
     .categories = "@slow @scripting", .group = "scripting", .since = "5.0.0", .summary = "Explains the subcommands.",
     .complexity = "O(1)", .syntax = "SCRIPT HELP"},
    {.name = "kill", .run = cmd_script_kill, .arity = 2, .access = ACCESS_FREE, .flags = "noscript allow_busy",
     .categories = "@slow @scripting", .group = "scripting", .since = "2.6.0",
     .summary = "Ends the running script if it has not written.", .complexity = "O(1)", .syntax = "SCRIPT KILL",
     .tips = "request_policy:all_shards response_policy:one_succeeded"},
    {.name = "load", .run = cmd_script_load, .arity = 3, .access = ACCESS_FREE, .flags = "noscript stale",
     .categories = "@slow @scripting", .group = "scripting", .since = "2.6.0",
     .summary = "Loads a script into the cache.", .complexity = "O(N), N the length of the script",
     .syntax = "SCRIPT LOAD script", .tips = "request_policy:all_nodes response_policy:all_succeeded"},
    {.name = "show", .run = cmd_script_show, .arity = 3, .access = ACCESS_FREE, .flags = "noscript stale",
     .categories = "@slow @scripting", .group = "scripting", .since = "8.0.0",
     .summary = "Returns the text of a script in the cache.", .complexity = "O(N), N the length of the script",
     .syntax = "SCRIPT SHOW sha1"},
    {0},
};
/* clang-format on */

/* clang-format off */
const struct command_row script_commands[] = {
    {.name = "eval", .run = cmd_eval, .flags_of = eval_flags, .keeps_to_keys = eval_keeps,
     .arity = -3, .access = ACCESS_STRIPED,
     .flags = "noscript stale skip_monitor no_mandatory_keys movablekeys may_replicate script",
     .categories = "@slow @scripting",
     .keys = "RW,ACCESS,UPDATE@index:2@keynum:0,1,1", .key_notes = NOTE_WRITES,
     .group = "scripting", .since = "2.6.0",
     .summary = "Runs a script.", .complexity = "Depends on the script.",
     .syntax = "EVAL script numkeys [key ...] [arg ...]"},
    {.name = "evalsha", .run = cmd_evalsha, .flags_of = evalsha_flags, .keeps_to_keys = evalsha_keeps,
     .arity = -3, .access = ACCESS_STRIPED,
     .flags = "noscript stale skip_monitor no_mandatory_keys movablekeys may_replicate script",
     .categories = "@slow @scripting",
     .keys = "RW,ACCESS,UPDATE@index:2@keynum:0,1,1", .group = "scripting", .since = "2.6.0",
     .summary = "Runs a cached script by its SHA-1.", .complexity = "Depends on the script.",
     .syntax = "EVALSHA sha1 numkeys [key ...] [arg ...]"},
    {.name = "evalsha_ro", .run = cmd_evalsha_ro, .flags_of = evalsha_flags, .keeps_to_keys = evalsha_keeps,
     .arity = -3, .access = ACCESS_STRIPED,
     .flags = "readonly noscript stale skip_monitor no_mandatory_keys movablekeys script",
     .categories = "@slow @scripting",
     .keys = "RO,ACCESS@index:2@keynum:0,1,1", .group = "scripting", .since = "7.0.0",
     .summary = "Runs a cached script that may not write, by its SHA-1.",
     .complexity = "Depends on the script.", .syntax = "EVALSHA_RO sha1 numkeys [key ...] [arg ...]"},
    {.name = "eval_ro", .run = cmd_eval_ro, .flags_of = eval_flags, .keeps_to_keys = eval_keeps,
     .arity = -3, .access = ACCESS_STRIPED,
     .flags = "readonly noscript stale skip_monitor no_mandatory_keys movablekeys script",
     .categories = "@slow @scripting",
     .keys = "RO,ACCESS@index:2@keynum:0,1,1", .key_notes = NOTE_READS,
     .group = "scripting", .since = "7.0.0",
     .summary = "Runs a script that may not write.", .complexity = "Depends on the script.",
     .syntax = "EVAL_RO script numkeys [key ...] [arg ...]"},
    {.name = "script", .run = cmd_script, .arity = -2, .access = ACCESS_FREE, .categories = "@slow",
     .group = "scripting", .since = "2.6.0", .summary = "Container for commands about scripts.",
     .complexity = "Depends on the subcommand.", .syntax = "SCRIPT", .subcommands = script_subcommands},
    {0},
};
/* clang-format on */
