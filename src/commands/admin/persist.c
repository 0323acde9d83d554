/* SAVE, BGSAVE, LASTSAVE. */
#include "commands/shared/families.h"

#include "server/core/request.h"
#include "server/durable/child.h"
#include "server/durable/persistence.h"

static void cmd_save(struct request *request)
{
    if (child_running() == CHILD_RDB || child_running() == CHILD_SYNC)
        reply_error(request, "ERR Background save already in progress");
    else if (!persistence_save(request->access))
        reply_error(request, "ERR");
    else
        reply_ok(request);
}

static void start(struct request *request)
{
    switch (persistence_start_child(request->access)) {
    case PERSISTENCE_STARTED:
        reply_status(request, "Background saving started");
        break;
    case PERSISTENCE_BUSY:
        reply_error(request, "ERR Background save already in progress");
        break;
    case PERSISTENCE_FAILED:
        reply_error(request, "ERR");
        break;
    }
}

static void cmd_bgsave(struct request *request)
{
    bool schedules = request->arg_count == 2 && request_arg_is(request, 1, "schedule");
    enum child_kind running = child_running();

    if (request->arg_count > 1 && !schedules) {
        reply_syntax_error(request);
    } else if (running == CHILD_SYNC && !schedules) {
        reply_error(request, "ERR Background save already in progress");
    } else if (running == CHILD_NONE || running == CHILD_RDB) {
        start(request);
    } else if (schedules) {
        persistence_schedule();
        reply_status(request, "Background saving scheduled");
    } else {
        reply_error(request, "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE "
                             "in order to schedule a BGSAVE whenever possible.");
    }
}

static void cmd_lastsave(struct request *request)
{
    reply_int(request, persistence_last_save_s());
}

/* clang-format off */
const struct command_row persist_commands[] = {
    {.name = "save", .run = cmd_save, .arity = 1, .access = ACCESS_EXCLUSIVE,
     .flags = "admin noscript no_async_loading no_multi", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "1.0.0", .summary = "Saves all keys to an RDB file. All clients wait.", .complexity = "O(N) for N keys",
     .syntax = "SAVE"},
    {.name = "bgsave", .run = cmd_bgsave, .arity = -1, .access = ACCESS_EXCLUSIVE,
     .flags = "admin noscript no_async_loading", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "1.0.0", .summary = "Saves all keys to an RDB file in the background.",
     .complexity = "O(1) to begin, O(N) for N keys in the background", .syntax = "BGSAVE [SCHEDULE]",
     .arg_since = "SCHEDULE:3.2.2", .history = "3.2.2=The word SCHEDULE."},
    {.name = "lastsave", .run = cmd_lastsave, .arity = 1, .access = ACCESS_FREE, .flags = "loading stale fast",
     .categories = "@admin @fast @dangerous", .group = "server", .since = "1.0.0",
     .summary = "Returns the Unix time of the last save.", .complexity = "O(1)", .syntax = "LASTSAVE",
     .tips = "nondeterministic_output"},
    {.name = NULL},
};
/* clang-format on */
