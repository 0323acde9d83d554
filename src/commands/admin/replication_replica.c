/* REPLICAOF: which master this server follows. */
#include "commands/shared/families.h"

#include "base/log.h"
#include "replication/failover.h"
#include "replication/master.h"
#include "server/core/client.h"
#include "server/core/request.h"

static const char *sender(const struct request *request)
{
    return request->client != NULL ? request->client->card.address : "?";
}

static void leave(struct request *request)
{
    if (master_leave())
        log_notice("MASTER MODE enabled (user request from %s)", sender(request));
    reply_ok(request);
}

static void follow(struct request *request)
{
    const struct slice host = request_arg(request, 1);
    char name[sizeof(((struct master_address *)NULL)->host)];
    int64_t port;

    if (!request_arg_range(request, 2, 0, 65535, &port, "ERR Invalid master port"))
        return;
    if (host.size == 0 || host.size >= sizeof(name) || memchr(host.data, '\0', host.size) != NULL) {
        reply_error(request, "ERR Invalid master host");
        return;
    }
    memcpy(name, host.data, host.size);
    name[host.size] = '\0';
    if (!master_follow(name, (int)port)) {
        reply_status(request, "OK Already connected to specified master");
        return;
    }
    log_notice("REPLICAOF %s:%d enabled (user request from %s)", name, (int)port, sender(request));
    reply_ok(request);
}

static void cmd_replicaof(struct request *request)
{
    if (failover_is_on()) {
        reply_error(request, "ERR REPLICAOF not allowed while failing over.");
        return;
    }
    if (request_arg_is(request, 1, "no") && request_arg_is(request, 2, "one"))
        leave(request);
    else
        follow(request);
}

/* clang-format off */
const struct command_row replication_replica_commands[] = {
    {.name = "replicaof", .run = cmd_replicaof, .arity = 3,
     .flags = "admin noscript stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "5.0.0", .summary = "Makes this server a replica of another, or a master.", .complexity = "O(1)",
     .syntax = "REPLICAOF (host port|NO ONE)"},
    {.name = "slaveof", .run = cmd_replicaof, .arity = 3,
     .flags = "admin noscript stale no_async_loading deprecated", .categories = "@admin @slow @dangerous",
     .group = "server", .since = "1.0.0", .summary = "Makes this server a replica of another, or a master.",
     .complexity = "O(1)",
     .syntax = "SLAVEOF (host port|NO ONE)", .deprecated_since = "5.0.0", .replaced_by = "`REPLICAOF`"},
    {0},
};
/* clang-format on */
