/* SLOWLOG, COMMANDLOG and MONITOR: what runs, what ran for long, and what was large. */
#include "base/mem.h"
#include "commands/shared/families.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/observe/command_log.h"
#include "server/pubsub/monitor.h"

#include <string.h>

enum { SHOWN_BY_DEFAULT = 10 };

static void reply_entry(struct request *request, const struct command_log_entry *entry)
{
    reply_array(request, 6);
    reply_int(request, (int64_t)entry->id);
    reply_int(request, entry->time_s);
    reply_int(request, (int64_t)entry->value);
    reply_array(request, entry->arg_count);
    for (uint32_t i = 0; i < entry->arg_count; i++)
        reply_bulk(request, entry->args[i]);
    reply_text(request, entry->address);
    reply_text(request, entry->name);
}

static void reply_entries(struct request *request, enum command_log_kind kind, int64_t most)
{
    struct command_log_entry **entries;
    size_t count;

    entries = command_log_get(kind, most == -1 ? SIZE_MAX : (size_t)most, &count);
    reply_array(request, count);
    for (size_t i = 0; i < count; i++) {
        reply_entry(request, entries[i]);
        command_log_release(entries[i]);
    }
    mem_free(entries);
}

static bool parse_count(struct request *request, int64_t *count)
{
    return request_arg_range(request, 2, -1, INT64_MAX, count, "ERR count should be greater than or equal to -1");
}

/* ------------------------------------------------------------------------------------------------------ SLOWLOG -- */

static void cmd_slowlog_get(struct request *request)
{
    int64_t most = SHOWN_BY_DEFAULT;

    if (request->arg_count > 3)
        reply_subcommand_syntax_error(request);
    else if (request->arg_count < 3 || parse_count(request, &most))
        reply_entries(request, COMMAND_LOG_SLOW, most);
}

static void cmd_slowlog_len(struct request *request)
{
    reply_int(request, (int64_t)command_log_size(COMMAND_LOG_SLOW));
}

static void cmd_slowlog_reset(struct request *request)
{
    command_log_reset(COMMAND_LOG_SLOW);
    reply_ok(request);
}

static void cmd_slowlog_help(struct request *request)
{
    static const char *const lines[] = {
        "GET [<count>]",
        "    Return the newest <count> entries of the slow log (default: 10, -1: all). Each has:",
        "    id, time stamp, duration in microseconds, arguments, address of the client,",
        "    name of the client",
        "LEN",
        "    Return the number of entries in the slow log.",
        "RESET",
        "    Delete all entries of the slow log.",
    };

    reply_help(request, lines, countof(lines));
}

/* --------------------------------------------------------------------------------------------------- COMMANDLOG -- */

static bool parse_kind(struct request *request, uint32_t index, enum command_log_kind *kind)
{
    static const char *const words[COMMAND_LOG_KINDS] = {[COMMAND_LOG_SLOW] = "slow",
                                                         [COMMAND_LOG_LARGE_REQUEST] = "large-request",
                                                         [COMMAND_LOG_LARGE_REPLY] = "large-reply"};

    for (*kind = 0; *kind < COMMAND_LOG_KINDS; ++*kind) {
        if (request_arg_is(request, index, words[*kind]))
            return true;
    }
    reply_error(request, "ERR type should be one of the following: slow, large-request, large-reply");
    return false;
}

static void cmd_commandlog_get(struct request *request)
{
    enum command_log_kind kind;
    int64_t most;

    if (parse_count(request, &most) && parse_kind(request, 3, &kind))
        reply_entries(request, kind, most);
}

static void cmd_commandlog_len(struct request *request)
{
    enum command_log_kind kind;

    if (parse_kind(request, 2, &kind))
        reply_int(request, (int64_t)command_log_size(kind));
}

static void cmd_commandlog_reset(struct request *request)
{
    enum command_log_kind kind;

    if (!parse_kind(request, 2, &kind))
        return;
    command_log_reset(kind);
    reply_ok(request);
}

static void cmd_commandlog_help(struct request *request)
{
    static const char *const lines[] = {
        "GET <count> <type>",
        "    Return the newest <count> entries of this type (-1: all). Each has: id, time stamp,",
        "    duration in microseconds or size in bytes, arguments, address of the client,",
        "    name of the client. Types: slow, large-request, large-reply.",
        "LEN <type>",
        "    Return the number of entries of this type.",
        "RESET <type>",
        "    Delete all entries of this type.",
    };

    reply_help(request, lines, countof(lines));
}

/* ------------------------------------------------------------------------------------------------------ MONITOR -- */

static void cmd_monitor(struct request *request)
{
    if (request->in_exec) {
        reply_error(request, "ERR MONITOR isn't allowed for DENY BLOCKING client");
        return;
    }
    if ((request->client->flags & CLIENT_MONITOR) != 0)
        return; /* the client is a monitor and sees this already */
    monitor_start(request->client);
    reply_ok(request);
}

/* clang-format off */
static const struct command_row slowlog_subcommands[] = {
    {
        .name = "get", .run = cmd_slowlog_get, .arity = -2, .access = ACCESS_FREE, .flags = "admin loading stale",
        .categories = "@admin @slow @dangerous", .group = "server", .since = "2.2.12",
        .summary = "Returns the newest entries of the slow log.", .complexity = "O(N), N entries returned",
        .syntax = "SLOWLOG GET [count]", .tips = "request_policy:all_nodes nondeterministic_output",
        .history = "4.0.0=The client's address and name were added.",
    },
    {
        .name = "help", .run = cmd_slowlog_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
        .categories = "@slow", .group = "server", .since = "6.2.0", .summary = "Explains the subcommands.",
        .complexity = "O(1)", .syntax = "SLOWLOG HELP",
    },
    {
        .name = "len", .run = cmd_slowlog_len, .arity = 2, .access = ACCESS_FREE, .flags = "admin loading stale",
        .categories = "@admin @slow @dangerous", .group = "server", .since = "2.2.12",
        .summary = "Returns how many entries the slow log has.", .complexity = "O(1)", .syntax = "SLOWLOG LEN",
        .tips = "request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
    },
    {
        .name = "reset", .run = cmd_slowlog_reset, .arity = 2, .access = ACCESS_FREE, .flags = "admin loading stale",
        .categories = "@admin @slow @dangerous", .group = "server", .since = "2.2.12",
        .summary = "Deletes all entries of the slow log.", .complexity = "O(N), N entries", .syntax = "SLOWLOG RESET",
        .tips = "request_policy:all_nodes response_policy:all_succeeded",
    },
    {0},
};
/* clang-format on */

/* clang-format off */
static const struct command_row commandlog_subcommands[] = {
    {
        .name = "get", .run = cmd_commandlog_get, .arity = 4, .access = ACCESS_FREE, .flags = "admin loading stale",
        .categories = "@admin @slow @dangerous", .group = "server", .since = "8.1.0",
        .summary = "Returns the newest entries of a type of the command log.", .complexity = "O(N), N entries returned",
        .syntax = "COMMANDLOG GET count (SLOW|LARGE-REQUEST|LARGE-REPLY)",
        .tips = "request_policy:all_nodes nondeterministic_output",
    },
    {
        .name = "help", .run = cmd_commandlog_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
        .categories = "@slow", .group = "server", .since = "8.1.0", .summary = "Explains the subcommands.",
        .complexity = "O(1)", .syntax = "COMMANDLOG HELP",
    },
    {
        .name = "len", .run = cmd_commandlog_len, .arity = 3, .access = ACCESS_FREE, .flags = "admin loading stale",
        .categories = "@admin @slow @dangerous", .group = "server", .since = "8.1.0",
        .summary = "Returns how many entries of a type the command log has.", .complexity = "O(1)",
        .syntax = "COMMANDLOG LEN (SLOW|LARGE-REQUEST|LARGE-REPLY)",
        .tips = "request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
    },
    {
        .name = "reset", .run = cmd_commandlog_reset, .arity = 3, .access = ACCESS_FREE,
        .flags = "admin loading stale", .categories = "@admin @slow @dangerous", .group = "server", .since = "8.1.0",
        .summary = "Deletes the entries of a type of the command log.", .complexity = "O(N), N entries",
        .syntax = "COMMANDLOG RESET (SLOW|LARGE-REQUEST|LARGE-REPLY)",
        .tips = "request_policy:all_nodes response_policy:all_succeeded",
    },
    {0},
};
/* clang-format on */

static void cmd_container(struct request *request)
{
    reply_subcommand_error(request);
}

/* clang-format off */
const struct command_row command_log_commands[] = {
    {
        .name = "commandlog", .run = cmd_container, .arity = -2, .access = ACCESS_FREE, .categories = "@slow",
        .group = "server", .since = "8.1.0", .summary = "Container for commands about the command log.",
        .complexity = "Depends on the subcommand.", .syntax = "COMMANDLOG", .subcommands = commandlog_subcommands,
    },
    {
        .name = "slowlog", .run = cmd_container, .arity = -2, .access = ACCESS_FREE, .categories = "@slow",
        .group = "server", .since = "2.2.12", .summary = "Container for commands about the slow log.",
        .complexity = "Depends on the subcommand.", .syntax = "SLOWLOG", .subcommands = slowlog_subcommands,
    },
    {
        .name = "monitor", .run = cmd_monitor, .arity = 1, .access = ACCESS_FREE,
        .flags = "admin noscript loading stale", .categories = "@admin @slow @dangerous", .group = "server",
        .since = "1.0.0",
        .summary = "Shows every command that the server runs.", .complexity = "", .syntax = "MONITOR",
    },
    {0},
};
/* clang-format on */
