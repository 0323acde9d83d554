/* FCALL, FCALL_RO, FUNCTION. */
#include "base/glob.h"
#include "base/mem.h"
#include "script/function_host.h"
#include "script/function_payload.h"
#include "script/functions.h"
#include "script/script_busy.h"
#include "script/scripts.h"
#include "server/pubsub/monitor.h"

static struct script_host *host_of(struct request *request)
{
    struct script_host *host = script_host_here(request->worker);

    if (host == NULL)
        reply_error(request, "ERR not enough memory for functions");
    return host;
}

static bool read_key_count(struct request *request, uint32_t *key_count)
{
    const int64_t most = (int64_t)request->arg_count - 3;
    int64_t count;

    if (!request_arg_range(request, 2, INT64_MIN, INT64_MAX, &count, "ERR Bad number of keys provided"))
        return false;
    if (count > most)
        reply_error(request, "ERR Number of keys can't be greater than number of args");
    else if (count < 0)
        reply_error(request, "ERR Number of keys can't be negative");
    else
        *key_count = (uint32_t)count;
    return count >= 0 && count <= most;
}

static void fcall(struct request *request, bool read_only)
{
    struct function *function = functions_find(request_arg(request, 1));
    struct script_host *host;
    struct library *library;
    uint32_t key_count = 0;

    monitor_note_first(request);
    if (function == NULL) {
        reply_error(request, "ERR Function not found");
        return;
    }
    library = function->library;
    host = read_key_count(request, &key_count) ? host_of(request) : NULL;
    if (host != NULL)
        function_host_call(host, request, function, read_only, key_count);
    library_release(&library);
}

static uint32_t fcall_flags(uint32_t flags, const struct slice *args, uint32_t arg_count)
{
    struct function *function = arg_count > 1 ? functions_find(args[1]) : NULL;
    struct library *library;

    if (function == NULL)
        return flags;
    flags = script_command_flags(flags, function->flags);
    library = function->library;
    library_release(&library);
    return flags;
}

static void cmd_fcall(struct request *request)
{
    fcall(request, false);
}

static void cmd_fcall_ro(struct request *request)
{
    fcall(request, true);
}

/* ------------------------------------------------------------------------------------------------------ changing -- */

static void reply_problem(struct request *request, const struct buffer *error)
{
    reply_errorf(request, "%.*s", (int)error->size, error->data);
}

/* The command's own words, although no key has changed. */
static void journal_words(struct request *request)
{
    request->access->dirty++;
}

/* What peers get of it: the library is a key. NULL: it was deleted. */
static void tell_library(struct request *request, struct slice name, const struct library *library)
{
    const struct slice words[] = {SLICE("KEYDB.OP.LIBRARY"), name, library != NULL ? library->code : SLICE_EMPTY};

    operation_add(request, words, library != NULL ? 3 : 2);
}

static bool is_obeyed(const struct request *request)
{
    return request->client != NULL && (request->client->flags & CLIENT_OBEYED) != 0;
}

static bool name_is_free(struct slice code, bool replaces, struct buffer *error)
{
    struct slice body;
    char *name = NULL;
    bool fine = library_read_head(code, &name, &body, error);

    if (fine && !replaces && functions_has_library(slice_from_text(name))) {
        buffer_printf(error, "ERR Library '%s' already exists", name);
        fine = false;
    }
    mem_free(name);
    return fine;
}

static bool load_library(struct request *request, struct slice code, bool replaces)
{
    struct script_host *host = host_of(request);
    struct library *library = NULL;
    struct buffer error = {0};
    bool fine;

    if (host == NULL)
        return false;
    if (name_is_free(code, replaces, &error))
        library = function_host_load(host, code, &error);
    fine = library != NULL &&
           functions_add(&library, 1, replaces ? FUNCTIONS_REPLACE : FUNCTIONS_APPEND, is_obeyed(request), &error);
    if (fine) {
        journal_words(request);
        tell_library(request, slice_from_text(library->name), library);
        reply_text(request, library->name);
    } else {
        reply_problem(request, &error);
    }
    library_release(&library);
    buffer_fini(&error);
    return fine;
}

static void cmd_function_load(struct request *request)
{
    const uint32_t last = request->arg_count - 1;
    bool replaces = false;

    for (uint32_t i = 2; i < last; i++) {
        if (!request_arg_is(request, i, "replace")) {
            reply_errorf(request, "ERR Unknown option given: %.*s", (int)MIN(request->args[i].size, (size_t)900),
                         request->args[i].data);
            return;
        }
        replaces = true;
    }
    (void)load_library(request, request_arg(request, last), replaces);
}

static void cmd_function_delete(struct request *request)
{
    if (!functions_delete(request_arg(request, 2))) {
        reply_error(request, "ERR Library not found");
        return;
    }
    journal_words(request);
    tell_library(request, request_arg(request, 2), NULL);
    reply_ok(request);
}

static void cmd_function_flush(struct request *request)
{
    if (request->arg_count > 3) {
        reply_subcommand_syntax_error(request);
    } else if (request->arg_count == 3 && !request_arg_is(request, 2, "sync") && !request_arg_is(request, 2, "async")) {
        reply_error(request, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
    } else {
        functions_flush();
        journal_words(request);
        reply_ok(request);
    }
}

/* A library of a peer, whatever is here: with its source, or it goes. */
static void operate_library(struct request *request)
{
    const struct slice name = request_arg(request, 1);

    if (request->arg_count == 3) {
        if (load_library(request, request_arg(request, 2), true))
            effect_set(request,
                       (const struct slice[]){SLICE("FUNCTION"), SLICE("LOAD"), SLICE("REPLACE"),
                                              request_arg(request, 2)},
                       4);
    } else if (functions_delete(name)) {
        journal_words(request);
        effect_set(request, (const struct slice[]){SLICE("FUNCTION"), SLICE("DELETE"), name}, 3);
        reply_ok(request);
    } else {
        effect_none(request);
        reply_ok(request);
    }
}

struct restoring {
    struct request *request;
    enum functions_policy policy;
};

static void tell_restored(const struct library *library, void *context)
{
    const struct restoring *restoring = context;

    if (library != NULL)
        tell_library(restoring->request, slice_from_text(library->name), library);
    else if (restoring->policy == FUNCTIONS_FLUSH)
        operation_add(restoring->request, (const struct slice[]){SLICE("FUNCTION"), SLICE("FLUSH")}, 2);
    else
        operation_none(restoring->request);
}

static bool parse_policy(struct request *request, enum functions_policy *policy)
{
    *policy = FUNCTIONS_APPEND;
    if (request->arg_count > 4) {
        reply_subcommand_syntax_error(request);
        return false;
    }
    if (request->arg_count == 3 || request_arg_is(request, 3, "append"))
        return true;
    if (request_arg_is(request, 3, "replace")) {
        *policy = FUNCTIONS_REPLACE;
    } else if (request_arg_is(request, 3, "flush")) {
        *policy = FUNCTIONS_FLUSH;
    } else {
        reply_error(request, "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
        return false;
    }
    return true;
}

static void cmd_function_restore(struct request *request)
{
    struct restoring restoring = {.request = request};
    struct buffer error = {0};
    struct script_host *host = parse_policy(request, &restoring.policy) ? host_of(request) : NULL;

    if (host == NULL)
        return;
    if (function_payload_restore(host, request_arg(request, 2), restoring.policy, tell_restored, &restoring, &error)) {
        journal_words(request);
        reply_ok(request);
    } else {
        reply_problem(request, &error);
    }
    buffer_fini(&error);
}

static void cmd_function_dump(struct request *request)
{
    struct buffer payload = {0};

    function_payload_write(&payload);
    reply_bulk(request, buffer_slice(&payload));
    buffer_fini(&payload);
}

/* ------------------------------------------------------------------------------------------------------- telling -- */

struct listing {
    struct request *request;
    struct slice pattern; /* data NULL: all */
    bool with_code;
    uint64_t count;
};

static bool is_listed(const struct listing *listing, const struct library *library)
{
    return listing->pattern.data == NULL || glob_match(listing->pattern, slice_from_text(library->name), true);
}

static void list_function(struct request *request, const struct function *function)
{
    uint64_t flag_count = 0;

    reply_map(request, 3);
    reply_text(request, "name");
    reply_text(request, function->name);
    reply_text(request, "description");
    if (function->description != NULL)
        reply_text(request, function->description);
    else
        reply_null(request);
    reply_text(request, "flags");
    for (unsigned i = 0; script_flag_name(i) != NULL; i++)
        flag_count += (function->flags >> i) & 1;
    reply_set(request, flag_count);
    for (unsigned i = 0; script_flag_name(i) != NULL; i++) {
        if (((function->flags >> i) & 1) != 0)
            reply_status(request, script_flag_name(i));
    }
}

static void list_library(const struct library *library, void *context)
{
    struct listing *listing = context;
    struct request *request = listing->request;

    if (!is_listed(listing, library))
        return;
    listing->count++;
    reply_map(request, listing->with_code ? 4 : 3);
    reply_text(request, "library_name");
    reply_text(request, library->name);
    reply_text(request, "engine");
    reply_text(request, "LUA");
    reply_text(request, "functions");
    reply_array(request, library->functions.count);
    for (uint32_t i = 0; i < library->functions.count; i++)
        list_function(request, &library->functions.items[i]);
    if (listing->with_code) {
        reply_text(request, "library_code");
        reply_bulk(request, library->code);
    }
}

static bool parse_list(struct request *request, struct listing *listing)
{
    for (uint32_t i = 2; i < request->arg_count; i++) {
        if (!listing->with_code && request_arg_is(request, i, "withcode")) {
            listing->with_code = true;
        } else if (listing->pattern.data == NULL && request_arg_is(request, i, "libraryname")) {
            if (++i == request->arg_count) {
                reply_error(request, "ERR library name argument was not given");
                return false;
            }
            listing->pattern = request_arg(request, i);
        } else {
            reply_errorf(request, "ERR Unknown argument %.*s", (int)MIN(request->args[i].size, (size_t)128),
                         request->args[i].data);
            return false;
        }
    }
    return true;
}

static void cmd_function_list(struct request *request)
{
    struct listing listing = {.request = request};
    struct resp_deferred head;

    if (!parse_list(request, &listing))
        return;
    head = resp_begin_deferred(request->out);
    functions_each(list_library, &listing);
    resp_end_deferred(request->out, request->proto, head, RESP_ARRAY, listing.count);
}

static void cmd_function_stats(struct request *request)
{
    struct functions_facts facts;

    functions_facts(&facts);
    reply_map(request, 2);
    reply_text(request, "running_script");
    script_busy_reply(request);
    reply_text(request, "engines");
    reply_map(request, 1);
    reply_text(request, "LUA");
    reply_map(request, 2);
    reply_text(request, "libraries_count");
    reply_int(request, (int64_t)facts.libraries);
    reply_text(request, "functions_count");
    reply_int(request, (int64_t)facts.functions);
}

static void cmd_function_kill(struct request *request)
{
    script_busy_kill(request, true);
}

static void cmd_function_help(struct request *request)
{
    static const char *const lines[] = {
        "DELETE <library name>",
        "    Delete a library with its functions.",
        "DUMP",
        "    Return all libraries as a payload for RESTORE.",
        "FLUSH [ASYNC|SYNC]",
        "    Delete all libraries.",
        "KILL",
        "    End the running function if it has not written.",
        "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
        "    Return the libraries: name, engine, functions and, with WITHCODE, the code.",
        "LOAD [REPLACE] <code>",
        "    Load a library; its first line is #!lua name=<library name>.",
        "RESTORE <payload> [APPEND|REPLACE|FLUSH]",
        "    Load the libraries of a payload. APPEND: a name that exists is an error. REPLACE: libraries of the",
        "    same name are replaced. FLUSH: all existing libraries are deleted first.",
        "STATS",
        "    Return the running function and the numbers of libraries and functions.",
    };

    reply_help(request, lines, countof(lines));
}

static void cmd_function(struct request *request)
{
    reply_subcommand_error(request);
}

#define NOTE_WRITES "The function may read, change and make every key it is given"
#define NOTE_READS "The function may read every key it is given"

/* clang-format off */
static const struct command_row function_subcommands[] = {
    {.name = "delete", .run = cmd_function_delete, .arity = 3, .access = ACCESS_EXCLUSIVE, .flags = "write noscript",
     .categories = "@write @slow @scripting", .group = "scripting", .since = "7.0.0",
     .summary = "Deletes a library with its functions.", .complexity = "O(1)",
     .syntax = "FUNCTION DELETE library-name", .tips = "request_policy:all_shards response_policy:all_succeeded"},
    {.name = "dump", .run = cmd_function_dump, .arity = 2, .access = ACCESS_STRIPED, .flags = "noscript",
     .categories = "@slow @scripting", .group = "scripting", .since = "7.0.0",
     .summary = "Returns all libraries as bytes.", .complexity = "O(N), N the number of functions",
     .syntax = "FUNCTION DUMP"},
    {.name = "flush", .run = cmd_function_flush, .arity = -2, .access = ACCESS_EXCLUSIVE, .flags = "write noscript",
     .categories = "@write @slow @scripting", .group = "scripting", .since = "7.0.0",
     .summary = "Deletes all libraries.", .complexity = "O(N), N the number of functions",
     .syntax = "FUNCTION FLUSH [ASYNC|SYNC]", .tips = "request_policy:all_shards response_policy:all_succeeded"},
    {.name = "help", .run = cmd_function_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
     .categories = "@slow @scripting", .group = "scripting", .since = "7.0.0",
     .summary = "Explains the subcommands.", .complexity = "O(1)", .syntax = "FUNCTION HELP"},
    {.name = "kill", .run = cmd_function_kill, .arity = 2, .access = ACCESS_FREE, .flags = "noscript allow_busy",
     .categories = "@slow @scripting", .group = "scripting", .since = "7.0.0",
     .summary = "Ends the running function if it has not written.", .complexity = "O(1)", .syntax = "FUNCTION KILL",
     .tips = "request_policy:all_shards response_policy:one_succeeded"},
    {.name = "list", .run = cmd_function_list, .arity = -2, .access = ACCESS_FREE, .flags = "noscript",
     .categories = "@slow @scripting", .group = "scripting", .since = "7.0.0",
     .summary = "Returns the libraries with their functions.",
     .complexity = "O(N), N the number of functions",
     .syntax = "FUNCTION LIST [LIBRARYNAME library-name-pattern] [WITHCODE]", .tips = "nondeterministic_output_order"},
    {.name = "load", .run = cmd_function_load, .arity = -3, .access = ACCESS_EXCLUSIVE,
     .flags = "write denyoom noscript", .categories = "@write @slow @scripting", .group = "scripting", .since = "7.0.0",
     .summary = "Loads a library of functions.", .complexity = "O(1), with the time the library takes to load",
     .syntax = "FUNCTION LOAD [REPLACE] function-code",
     .tips = "request_policy:all_shards response_policy:all_succeeded"},
    {.name = "restore", .run = cmd_function_restore, .arity = -3, .access = ACCESS_EXCLUSIVE,
     .flags = "write denyoom noscript", .categories = "@write @slow @scripting", .group = "scripting", .since = "7.0.0",
     .summary = "Loads all libraries from the bytes that FUNCTION DUMP returned.",
     .complexity = "O(N), N the number of functions in the payload",
     .syntax = "FUNCTION RESTORE serialized-value [FLUSH|APPEND|REPLACE]",
     .tips = "request_policy:all_shards response_policy:all_succeeded"},
    {.name = "stats", .run = cmd_function_stats, .arity = 2, .access = ACCESS_FREE, .flags = "noscript allow_busy",
     .categories = "@slow @scripting", .group = "scripting", .since = "7.0.0",
     .summary = "Returns the running function and the numbers of libraries and functions.",
     .complexity = "O(1)", .syntax = "FUNCTION STATS",
     .tips = "nondeterministic_output request_policy:all_shards response_policy:special"},
    {0},
};
/* clang-format on */

/* clang-format off */
const struct command_row function_commands[] = {
    {.name = "fcall", .run = cmd_fcall, .flags_of = fcall_flags, .arity = -3, .access = ACCESS_STRIPED,
     .flags = "noscript stale skip_monitor no_mandatory_keys movablekeys may_replicate script",
     .categories = "@slow @scripting",
     .keys = "RW,ACCESS,UPDATE@index:2@keynum:0,1,1", .key_notes = NOTE_WRITES, .group = "scripting", .since = "7.0.0",
     .summary = "Calls a function.", .complexity = "Depends on the function.",
     .syntax = "FCALL function numkeys [key ...] [arg ...]"},
    {.name = "fcall_ro", .run = cmd_fcall_ro, .flags_of = fcall_flags, .arity = -3, .access = ACCESS_STRIPED,
     .flags = "readonly noscript stale skip_monitor no_mandatory_keys movablekeys script",
     .categories = "@slow @scripting",
     .keys = "RO,ACCESS@index:2@keynum:0,1,1", .key_notes = NOTE_READS, .group = "scripting", .since = "7.0.0",
     .summary = "Calls a function that may not write.", .complexity = "Depends on the function.",
     .syntax = "FCALL_RO function numkeys [key ...] [arg ...]"},
    {.name = "keydb.op.library", .run = operate_library, .arity = -2, .access = ACCESS_EXCLUSIVE,
     .flags = "write operation", .categories = "@write @slow @scripting", .group = "scripting", .since = "7.0.0",
     .summary = "Loads or deletes a library of functions as another server has done.",
     .complexity = "O(1), with the time the library takes to load",
     .syntax = "KEYDB.OP.LIBRARY library-name [function-code]"},
    {.name = "function", .run = cmd_function, .arity = -2, .access = ACCESS_FREE,
     .categories = "@slow", .group = "scripting", .since = "7.0.0",
     .summary = "Container for commands about functions.",
     .complexity = "Depends on the subcommand.", .syntax = "FUNCTION", .subcommands = function_subcommands},
    {0},
};
/* clang-format on */
