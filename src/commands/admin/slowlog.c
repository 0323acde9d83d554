/* SLOWLOG and MONITOR: what runs, and what ran for long. */
#include "base/mem.h"
#include "commands/shared/families.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/observe/slowlog.h"
#include "server/pubsub/monitor.h"

#include <string.h>

enum { SHOWN_BY_DEFAULT = 10 };

static void reply_entry(struct request *request, const struct slowlog_entry *entry)
{
    reply_array(request, 6);
    reply_int(request, (int64_t)entry->id);
    reply_int(request, entry->time_s);
    reply_int(request, (int64_t)entry->duration_us);
    reply_array(request, entry->arg_count);
    for (uint32_t i = 0; i < entry->arg_count; i++)
        reply_bulk(request, entry->args[i]);
    reply_text(request, entry->address);
    reply_text(request, entry->name);
}

static void cmd_slowlog_get(struct request *request)
{
    int64_t most = SHOWN_BY_DEFAULT;
    struct slowlog_entry **entries;
    size_t count;

    if (request->arg_count > 3) {
        reply_subcommand_syntax_error(request);
        return;
    }
    if (request->arg_count == 3 &&
        !request_arg_range(request, 2, -1, INT64_MAX, &most, "ERR count should be greater than or equal to -1"))
        return;
    entries = slowlog_get(most == -1 ? SIZE_MAX : (size_t)most, &count);
    reply_array(request, count);
    for (size_t i = 0; i < count; i++) {
        reply_entry(request, entries[i]);
        slowlog_release(entries[i]);
    }
    mem_free(entries);
}

static void cmd_slowlog_len(struct request *request)
{
    reply_int(request, (int64_t)slowlog_size());
}

static void cmd_slowlog_reset(struct request *request)
{
    slowlog_reset();
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

static void cmd_slowlog(struct request *request)
{
    reply_subcommand_error(request);
}

/* clang-format off */
const struct command_row slowlog_commands[] = {
    {
        .name = "slowlog", .run = cmd_slowlog, .arity = -2, .access = ACCESS_FREE, .categories = "@slow",
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
