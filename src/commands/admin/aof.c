/* BGREWRITEAOF, WAITAOF. */
#include "commands/shared/families.h"

#include "base/number.h"
#include "replication/wait.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/role.h"
#include "server/durable/aof.h"

static void cmd_bgrewriteaof(struct request *request)
{
    switch (aof_rewrite(request->access)) {
    case AOF_REWRITE_STARTED:
        reply_status(request, "Background append only file rewriting started");
        break;
    case AOF_REWRITE_SCHEDULED:
        reply_status(request, "Background append only file rewriting scheduled");
        break;
    case AOF_REWRITE_RUNS:
        reply_error(request, "ERR Background append only file rewriting already in progress");
        break;
    case AOF_REWRITE_FAILED:
        reply_error(request, "ERR Can't execute an AOF background rewriting. Please check the server logs for more "
                             "information.");
        break;
    }
}

/* ------------------------------------------------------------------------------------------------------ WAITAOF -- */

enum { ARG_LOCAL = 1, ARG_REPLICAS = 2, ARG_TIMEOUT = 3 };

static const char off_error[] = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

static bool parse_wait(struct request *request, int64_t *local, int64_t *replicas, int64_t *timeout_ms)
{
    if (!request_arg_i64(request, ARG_LOCAL, local))
        return false;
    if (*local < 0 || *local > 1) {
        reply_error(request, "ERR value is out of range, value must between 0 and 1");
        return false;
    }
    if (!request_arg_i64(request, ARG_REPLICAS, replicas))
        return false;
    if (*replicas < 0) {
        reply_error(request, "ERR value is out of range, must be positive");
        return false;
    }
    if (!number_parse_i64(request_arg(request, ARG_TIMEOUT), timeout_ms)) {
        reply_error(request, "ERR timeout is not an integer or out of range");
        return false;
    }
    if (*timeout_ms < 0)
        reply_error(request, "ERR timeout is negative");
    return *timeout_ms >= 0;
}

static void put_counts(struct output *out, unsigned replica_count, bool is_in_file)
{
    resp_write_array(out, 2, 2);
    resp_write_int(out, is_in_file);
    resp_write_int(out, replica_count);
}

static void reply_later(struct client *client, const struct wait_state *state)
{
    put_counts(&client->conn.output, state->replica_count, state->is_in_file);
}

static void reply_later_with_file(struct client *client, const struct wait_state *state)
{
    if (!aof_is_on() && !state->is_in_file)
        resp_write_error_text(&client->conn.output, off_error);
    else
        put_counts(&client->conn.output, state->replica_count, state->is_in_file);
}

static void cmd_waitaof(struct request *request)
{
    struct client *client = request->client;
    int64_t local, replicas, timeout_ms;
    struct wait_state state;

    if (role_follows()) {
        reply_error(request, "ERR WAITAOF cannot be used with replica instances. Please also note that writes to "
                             "replicas are just local and are not propagated.");
        return;
    }
    if (!parse_wait(request, &local, &replicas, &timeout_ms))
        return;
    if (local != 0 && !aof_is_on()) {
        reply_error(request, off_error);
        return;
    }
    state = wait_look(client->written_offset, REPLICAS_SYNCED);
    if ((state.is_in_file >= local && state.replica_count >= replicas) || request->in_exec) {
        put_counts(request->out, state.replica_count, state.is_in_file);
        return;
    }
    request->blocked = true;
    wait_begin(client, &(struct wait_wish){.offset = client->written_offset,
                                           .replica_count = replicas,
                                           .proof = REPLICAS_SYNCED,
                                           .wants_file = local != 0,
                                           .timeout_ms = timeout_ms,
                                           .reply = local != 0 ? reply_later_with_file : reply_later});
}

/* clang-format off */
const struct command_row aof_commands[] = {
    {.name = "bgrewriteaof", .run = cmd_bgrewriteaof, .arity = 1, .access = ACCESS_EXCLUSIVE,
     .flags = "admin noscript no_async_loading", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "1.0.0", .summary = "Rewrites the append-only file in the background.",
     .complexity = "O(1) to begin, O(N) for N keys in the background", .syntax = "BGREWRITEAOF"},
    {.name = "waitaof", .run = cmd_waitaof, .arity = 4, .access = ACCESS_FREE, .flags = "blocking",
     .categories = "@slow @blocking @connection", .group = "generic", .since = "7.2.0",
     .summary = "Waits until all earlier writes are on the disk, here and on replicas.", .complexity = "O(1)",
     .syntax = "WAITAOF numlocal numreplicas timeout", .tips = "request_policy:all_shards response_policy:agg_min"},
    {.name = NULL},
};
/* clang-format on */
