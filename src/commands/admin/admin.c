/* SHUTDOWN, DEBUG and other commands for operators. */
#include "commands/debug/debug.h"
#include "commands/shared/families.h"

#include "base/log.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/upkeep/soft_shutdown.h"
#include "server/upkeep/shutdown.h"
#include "server/upkeep/shutdown_wait.h"

/* --- SHUTDOWN --- */

enum { SHUTDOWN_ABORT = 1 << 8, SHUTDOWN_SOFT = 1 << 9 }; /* beside enum shutdown_flag */

static bool parse_shutdown(const struct slice *args, uint32_t arg_count, unsigned *flags)
{
    static const struct {
        const char *word;
        unsigned flag;
    } words[] = {
        {"nosave", SHUTDOWN_NOSAVE}, {"save", SHUTDOWN_SAVE},   {"now", SHUTDOWN_NOW},
        {"force", SHUTDOWN_FORCE},   {"abort", SHUTDOWN_ABORT}, {"soft", SHUTDOWN_SOFT},
    };

    *flags = 0;
    for (uint32_t i = 1; i < arg_count; i++) {
        size_t k = 0;

        while (k < countof(words) && !slice_equal_text_nocase(args[i], words[k].word))
            k++;
        if (k == countof(words))
            return false;
        *flags |= words[k].flag;
    }
    if ((*flags & (SHUTDOWN_ABORT | SHUTDOWN_SOFT)) != 0)
        return *flags == SHUTDOWN_ABORT || *flags == SHUTDOWN_SOFT;
    return (*flags & (SHUTDOWN_NOSAVE | SHUTDOWN_SAVE)) != (SHUTDOWN_NOSAVE | SHUTDOWN_SAVE);
}

/* It waits for replicas, or a signal has asked for it and it has not begun. */
static void abort_shutdown(struct request *request)
{
    const bool was_asked = shutdown_forget_signal();

    if (!shutdown_wait_abort() && !was_asked) {
        reply_error(request, "ERR No shutdown in progress.");
        return;
    }
    log_notice("Shutdown manually aborted.");
    reply_ok(request);
}

static void soft_shutdown(struct request *request)
{
    soft_shutdown_begin();
    reply_ok(request);
}

/* Only where the data is saved before. */
static enum access_class shutdown_access_of(const struct slice *args, uint32_t arg_count)
{
    unsigned flags;

    if (!parse_shutdown(args, arg_count, &flags) || (flags & (SHUTDOWN_ABORT | SHUTDOWN_SOFT)) != 0)
        return ACCESS_FREE;
    return shutdown_needs_gate(flags) ? ACCESS_EXCLUSIVE : ACCESS_FREE;
}

static void cmd_shutdown(struct request *request)
{
    unsigned flags;

    if (!parse_shutdown(request->args, request->arg_count, &flags))
        reply_syntax_error(request);
    else if (flags == SHUTDOWN_ABORT)
        abort_shutdown(request);
    else if (flags == SHUTDOWN_SOFT)
        soft_shutdown(request);
    else if ((flags & SHUTDOWN_NOW) == 0 && shutdown_wait_begin(request->client, flags))
        request->blocked = true;
    else if (!shutdown_begin(request->worker->server, flags, request->access->exclusive ? request->access : NULL))
        reply_error(request, "ERR Errors trying to SHUTDOWN. Check logs.");
    else
        (void)shutdown_keep_open(request->client); /* the end is the reply */
}

/* clang-format off */
const struct command_row admin_commands[] = {
    {
        .name = "shutdown", .run = cmd_shutdown, .arity = -1, .access = ACCESS_FREE,
        .access_of = shutdown_access_of,
        .flags = "admin noscript loading stale no_multi allow_busy sentinel",
        .categories = "@admin @slow @dangerous", .group = "server", .since = "1.0.0",
        .summary = "Saves the data, if so configured, and stops the server.",
        .complexity = "O(N) when saving, where N is the number of keys; else O(1)",
        .syntax = "SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [ABORT]", .arg_since = "NOW:7.0.0 FORCE:7.0.0 ABORT:7.0.0",
        .history = "7.0.0=The words NOW, FORCE and ABORT.",
    },
    {
        .name = "debug", .run = cmd_debug, .arity = -2, .access = ACCESS_EXCLUSIVE,
        .flags = "admin noscript loading stale protected syscmd alone", .categories = "@admin @slow @dangerous",
        .group = "server", .since = "1.0.0", .summary = "Container for commands that test the server.",
        .complexity = "Depends on the subcommand.", .syntax = "DEBUG", .access_of = debug_access_of,
        .find_keys = debug_find_keys,
    },
    {0},
};
/* clang-format on */
