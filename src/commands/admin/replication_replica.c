/* REPLICAOF: which master this server follows, or which ones an active replica has. */
#include "commands/shared/families.h"

#include "active/options.h"
#include "active/peers.h"
#include "base/log.h"
#include "replication/failover.h"
#include "replication/master.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/role.h"

#include <string.h>
#include <strings.h>

enum { HOST_SPACE = sizeof(((struct master_address *)NULL)->host) };

static const char *sender(const struct request *request)
{
    return request->client != NULL ? request->client->card.address : "?";
}

/* False: it has replied. */
static bool parse_address(struct request *request, uint32_t index, char host[HOST_SPACE], int *port)
{
    const struct slice name = request_arg(request, index);
    int64_t number;

    if (!request_arg_range(request, index + 1, 0, 65535, &number, "ERR Invalid master port"))
        return false;
    if (name.size == 0 || name.size >= HOST_SPACE || memchr(name.data, '\0', name.size) != NULL) {
        reply_error(request, "ERR Invalid master host");
        return false;
    }
    memcpy(host, name.data, name.size);
    host[name.size] = '\0';
    *port = (int)number;
    return true;
}

static void reply_same(struct request *request)
{
    reply_status(request, "OK Already connected to specified master");
}

/* --------------------------------------------------------------------------------- a master, or a plain replica -- */

static void leave(struct request *request)
{
    if (master_leave())
        log_notice("MASTER MODE enabled (user request from %s)", sender(request));
    reply_ok(request);
}

static void follow(struct request *request, const char *host, int port)
{
    if (!master_follow(host, port)) {
        reply_same(request);
        return;
    }
    log_notice("REPLICAOF %s:%d enabled (user request from %s)", host, port, sender(request));
    reply_ok(request);
}

static bool is_master(const char *host, int port)
{
    struct master_address address;

    (void)master_address(&address);
    return address.port == port && strcasecmp(address.host, host) == 0;
}

/* --------------------------------------------------------------------------------------------- an active replica -- */

static void leave_all(struct request *request)
{
    if (peers_clear())
        log_notice("No masters any more (user request from %s)", sender(request));
    reply_ok(request);
}

static bool others_are_there(const char *host, int port)
{
    return peers_count() > (peers_has(host, port) ? 1U : 0U);
}

/* Without multi-master there is one: then `host port` takes its place, and ADD is refused. */
static void add(struct request *request, const char *host, int port, bool may_replace)
{
    if (!OPTION_IS(option_multi_master) && others_are_there(host, port)) {
        if (!may_replace) {
            reply_error(request, "ERR There is a master already, and several need multi-master yes");
            return;
        }
        (void)peers_clear();
    }
    switch (peers_add(host, port)) {
    case PEERS_SAME:
        reply_same(request);
        return;
    case PEERS_FULL:
        reply_errorf(request, "ERR There are %d masters already", PEERS_MOST);
        return;
    case PEERS_DONE:
        log_notice("Master %s:%d added (user request from %s)", host, port, sender(request));
        reply_ok(request);
    }
}

/* ---------------------------------------------------------------------------------------------------- REPLICAOF -- */

static void cmd_add(struct request *request, const char *host, int port)
{
    if (OPTION_IS(option_active_replica))
        add(request, host, port, false);
    else if (role_follows() && !is_master(host, port))
        reply_error(request, "ERR There is a master already, and several need active-replica yes and multi-master yes");
    else
        follow(request, host, port);
}

static void cmd_remove(struct request *request, const char *host, int port)
{
    const bool is_active = OPTION_IS(option_active_replica);

    if (is_active ? !peers_remove(host, port) : !is_master(host, port)) {
        reply_error(request, "ERR Master not found");
        return;
    }
    if (!is_active) {
        leave(request);
        return;
    }
    log_notice("Master %s:%d removed (user request from %s)", host, port, sender(request));
    reply_ok(request);
}

static void cmd_replicaof(struct request *request)
{
    const bool is_add = request->arg_count == 4 && request_arg_is(request, 1, "add");
    const bool is_remove = request->arg_count == 4 && request_arg_is(request, 1, "remove");
    char host[HOST_SPACE];
    int port;

    if (failover_is_on()) {
        reply_error(request, "ERR REPLICAOF not allowed while failing over.");
        return;
    }
    if (request->arg_count > 3 && !is_add && !is_remove) {
        reply_error(request, "ERR Invalid arguments");
        return;
    }
    if (request->arg_count == 3 && request_arg_is(request, 1, "no") && request_arg_is(request, 2, "one")) {
        if (OPTION_IS(option_active_replica))
            leave_all(request);
        else
            leave(request);
        return;
    }
    if (!parse_address(request, request->arg_count - 2, host, &port))
        return;
    if (is_add)
        cmd_add(request, host, port);
    else if (is_remove)
        cmd_remove(request, host, port);
    else if (OPTION_IS(option_active_replica))
        add(request, host, port, true);
    else
        follow(request, host, port);
}

/* clang-format off */
const struct command_row replication_replica_commands[] = {
    {.name = "replicaof", .run = cmd_replicaof, .arity = -3,
     .flags = "admin noscript stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "5.0.0", .summary = "Makes this server a replica of another, or a master.", .complexity = "O(1)",
     .syntax = "REPLICAOF ([ADD|REMOVE] host port|NO ONE)",
     .history = "6.3.0=Several masters of an active replica."},
    {.name = "slaveof", .run = cmd_replicaof, .arity = 3,
     .flags = "admin noscript stale no_async_loading deprecated", .categories = "@admin @slow @dangerous",
     .group = "server", .since = "1.0.0", .summary = "Makes this server a replica of another, or a master.",
     .complexity = "O(1)",
     .syntax = "SLAVEOF (host port|NO ONE)", .deprecated_since = "5.0.0", .replaced_by = "`REPLICAOF`"},
    {0},
};
/* clang-format on */
