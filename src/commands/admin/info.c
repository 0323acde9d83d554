/* INFO: what server/observe/info.h writes, as a reply. */
#include "commands/shared/families.h"

#include "server/core/request.h"
#include "server/observe/info.h"

static void cmd_info(struct request *request)
{
    struct buffer text = {0};

    info_write(&text, &request->args[1], request->arg_count - 1);
    reply_verbatim(request, "txt", text.size == 0 ? SLICE("") : buffer_slice(&text));
    buffer_fini(&text);
}

/* clang-format off */
const struct command_row info_commands[] = {
    {.name = "info", .run = cmd_info, .arity = -1, .access = ACCESS_FREE, .flags = "loading stale",
     .categories = "@slow @dangerous", .group = "server", .since = "1.0.0",
     .summary = "Returns the state of the server and its counters.", .complexity = "O(1)",
     .syntax = "INFO [section ...]",
     .history = "7.0.0=Several sections in one call.",
     .tips = "nondeterministic_output request_policy:all_shards response_policy:special"},
    {0},
};
/* clang-format on */
