/* Commands about clusters and modules, answered as by a server without them: most clients and all
 * monitoring programs use them. Commands of Redis 7.0 and KeyDB that are not supported are rows, too, marked absent:
 * ACL rules and rename-command may name them. */
#include "commands/shared/families.h"

#include "server/core/client.h"
#include "server/core/request.h"

/* ------------------------------------------------------------------------------------------------------ cluster -- */

static void cmd_no_cluster(struct request *request)
{
    reply_error(request, "ERR This instance has cluster support disabled");
}

/* Without a cluster they are for clients that a replica would send to its master (CLIENT CAPA redirect). */
static void set_readonly(struct request *request, bool reads_here)
{
    struct client *client = request->client;

    if ((client->flags & CLIENT_CAPA_REDIRECT) == 0) {
        cmd_no_cluster(request);
        return;
    }
    client->flags &= ~(uint32_t)CLIENT_READONLY;
    client->flags |= reads_here ? CLIENT_READONLY : 0;
    reply_ok(request);
}

static void cmd_readonly(struct request *request)
{
    set_readonly(request, true);
}

static void cmd_readwrite(struct request *request)
{
    set_readonly(request, false);
}

/* ------------------------------------------------------------------------------------------------------ modules -- */

static void cmd_module_list(struct request *request)
{
    reply_array(request, 0);
}

static void cmd_module_load(struct request *request)
{
    reply_error(request, "ERR Error loading the extension. This server has no interface for modules.");
}

static void cmd_module_unload(struct request *request)
{
    reply_error(request, "ERR Error unloading module: no such module with that name");
}

static void cmd_module_help(struct request *request)
{
    static const char *const lines[] = {
        "LIST",
        "    Return the loaded modules: always none, since this server does not support modules.",
        "LOAD <path> [<arg> ...]",
        "    Always an error, like LOADEX.",
        "UNLOAD <name>",
        "    Always an error, since no module is loaded.",
    };

    reply_help(request, lines, countof(lines));
}

/* --------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
static const struct command_row cluster_subcommands[] = {
    {.name = "addslots", .run = cmd_no_cluster, .arity = -3, .access = ACCESS_FREE,
     .flags = "admin stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "cluster",
     .since = "3.0.0", .summary = "Assigns slots to this node.", .complexity = "O(N) for N slots",
     .syntax = "CLUSTER ADDSLOTS slot [slot ...]"},
    {.name = "addslotsrange", .run = cmd_no_cluster, .arity = -4, .access = ACCESS_FREE,
     .flags = "admin stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "cluster",
     .since = "7.0.0", .summary = "Assigns ranges of slots to this node.", .complexity = "O(N) for N slots",
     .syntax = "CLUSTER ADDSLOTSRANGE start-slot end-slot [start-slot end-slot ...]"},
    {.name = "bumpepoch", .run = cmd_no_cluster, .arity = 2, .access = ACCESS_FREE,
     .flags = "admin stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "cluster",
     .since = "3.0.0", .summary = "Advances the configuration epoch of the cluster.", .complexity = "O(1)",
     .syntax = "CLUSTER BUMPEPOCH", .tips = "nondeterministic_output"},
    {.name = "count-failure-reports", .run = cmd_no_cluster, .arity = 3, .access = ACCESS_FREE,
     .flags = "admin stale", .categories = "@admin @slow @dangerous", .group = "cluster", .since = "3.0.0",
     .summary = "Returns how many nodes report that a node fails.", .complexity = "O(N) for N reports",
     .syntax = "CLUSTER COUNT-FAILURE-REPORTS node-id", .tips = "nondeterministic_output"},
    {.name = "countkeysinslot", .run = cmd_no_cluster, .arity = 3, .access = ACCESS_FREE, .flags = "stale",
     .categories = "@slow", .group = "cluster", .since = "3.0.0", .summary = "Returns the number of keys in a slot.",
     .complexity = "O(1)", .syntax = "CLUSTER COUNTKEYSINSLOT slot"},
    {.name = "delslots", .run = cmd_no_cluster, .arity = -3, .access = ACCESS_FREE,
     .flags = "admin stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "cluster",
     .since = "3.0.0", .summary = "Removes slots from this node.", .complexity = "O(N) for N slots",
     .syntax = "CLUSTER DELSLOTS slot [slot ...]"},
    {.name = "delslotsrange", .run = cmd_no_cluster, .arity = -4, .access = ACCESS_FREE,
     .flags = "admin stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "cluster",
     .since = "7.0.0", .summary = "Removes ranges of slots from this node.", .complexity = "O(N) for N slots",
     .syntax = "CLUSTER DELSLOTSRANGE start-slot end-slot [start-slot end-slot ...]"},
    {.name = "failover", .run = cmd_no_cluster, .arity = -2, .access = ACCESS_FREE,
     .flags = "admin stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "cluster",
     .since = "3.0.0", .summary = "Makes a replica take the place of its master.", .complexity = "O(1)",
     .syntax = "CLUSTER FAILOVER [FORCE|TAKEOVER]"},
    {.name = "flushslots", .run = cmd_no_cluster, .arity = 2, .access = ACCESS_FREE,
     .flags = "admin stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "cluster",
     .since = "3.0.0", .summary = "Removes all slots from this node.", .complexity = "O(1)",
     .syntax = "CLUSTER FLUSHSLOTS"},
    {.name = "forget", .run = cmd_no_cluster, .arity = 3, .access = ACCESS_FREE,
     .flags = "admin stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "cluster",
     .since = "3.0.0", .summary = "Removes a node from the known nodes.", .complexity = "O(1)",
     .syntax = "CLUSTER FORGET node-id"},
    {.name = "getkeysinslot", .run = cmd_no_cluster, .arity = 4, .access = ACCESS_FREE, .flags = "stale",
     .categories = "@slow", .group = "cluster", .since = "3.0.0", .summary = "Returns the names of keys in a slot.",
     .complexity = "O(N) for N keys", .syntax = "CLUSTER GETKEYSINSLOT slot count",
     .tips = "nondeterministic_output"},
    {.name = "help", .run = cmd_no_cluster, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
     .categories = "@slow", .group = "cluster", .since = "5.0.0", .summary = "Explains the subcommands.",
     .complexity = "O(1)", .syntax = "CLUSTER HELP"},
    {.name = "info", .run = cmd_no_cluster, .arity = 2, .access = ACCESS_FREE, .flags = "stale",
     .categories = "@slow", .group = "cluster", .since = "3.0.0",
     .summary = "Returns the state of the cluster, as this node sees it.", .complexity = "O(1)",
     .syntax = "CLUSTER INFO",
     .tips = "nondeterministic_output"},
    {.name = "keyslot", .run = cmd_no_cluster, .arity = 3, .access = ACCESS_FREE, .flags = "stale",
     .categories = "@slow", .group = "cluster", .since = "3.0.0", .summary = "Returns the slot of a key.",
     .complexity = "O(N) for N bytes", .syntax = "CLUSTER KEYSLOT key"},
    {.name = "links", .run = cmd_no_cluster, .arity = 2, .access = ACCESS_FREE, .flags = "stale",
     .categories = "@slow", .group = "cluster", .since = "7.0.0", .summary = "Returns the connections to other nodes.",
     .complexity = "O(N) for N nodes", .syntax = "CLUSTER LINKS", .tips = "nondeterministic_output"},
    {.name = "meet", .run = cmd_no_cluster, .arity = -4, .access = ACCESS_FREE,
     .flags = "admin stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "cluster",
     .since = "3.0.0", .summary = "Introduces another node to this one.", .complexity = "O(1)",
     .syntax = "CLUSTER MEET ip port [cluster-bus-port]", .history = "4.0.0=The port of the bus may be given."},
    {.name = "myid", .run = cmd_no_cluster, .arity = 2, .access = ACCESS_FREE, .flags = "stale",
     .categories = "@slow", .group = "cluster", .since = "3.0.0", .summary = "Returns the id of this node.",
     .complexity = "O(1)", .syntax = "CLUSTER MYID"},
    {.name = "nodes", .run = cmd_no_cluster, .arity = 2, .access = ACCESS_FREE, .flags = "stale",
     .categories = "@slow", .group = "cluster", .since = "3.0.0", .summary = "Returns the nodes with their slots.",
     .complexity = "O(N) for N nodes", .syntax = "CLUSTER NODES", .tips = "nondeterministic_output"},
    {.name = "replicas", .run = cmd_no_cluster, .arity = 3, .access = ACCESS_FREE, .flags = "admin stale",
     .categories = "@admin @slow @dangerous", .group = "cluster", .since = "5.0.0",
     .summary = "Returns the replicas of a node.", .complexity = "O(N) for N replicas",
     .syntax = "CLUSTER REPLICAS node-id",
     .tips = "nondeterministic_output"},
    {.name = "replicate", .run = cmd_no_cluster, .arity = 3, .access = ACCESS_FREE,
     .flags = "admin stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "cluster",
     .since = "3.0.0", .summary = "Makes this node a replica of another.", .complexity = "O(1)",
     .syntax = "CLUSTER REPLICATE node-id"},
    {.name = "reset", .run = cmd_no_cluster, .arity = -2, .access = ACCESS_FREE, .flags = "admin noscript stale",
     .categories = "@admin @slow @dangerous", .group = "cluster", .since = "3.0.0",
     .summary = "Makes this node forget the cluster.", .complexity = "O(N) for N nodes",
     .syntax = "CLUSTER RESET [HARD|SOFT]"},
    {.name = "saveconfig", .run = cmd_no_cluster, .arity = 2, .access = ACCESS_FREE,
     .flags = "admin stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "cluster",
     .since = "3.0.0", .summary = "Saves the configuration of the nodes.", .complexity = "O(1)",
     .syntax = "CLUSTER SAVECONFIG"},
    {.name = "set-config-epoch", .run = cmd_no_cluster, .arity = 3, .access = ACCESS_FREE,
     .flags = "admin stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "cluster",
     .since = "3.0.0", .summary = "Sets the configuration epoch of a new node.", .complexity = "O(1)",
     .syntax = "CLUSTER SET-CONFIG-EPOCH config-epoch"},
    {.name = "setslot", .run = cmd_no_cluster, .arity = -4, .access = ACCESS_FREE,
     .flags = "admin stale no_async_loading", .categories = "@admin @slow @dangerous", .group = "cluster",
     .since = "3.0.0", .summary = "Assigns a slot to a node, or sets its state.", .complexity = "O(1)",
     .syntax = "CLUSTER SETSLOT slot (IMPORTING node-id|MIGRATING node-id|NODE node-id|STABLE)"},
    {.name = "shards", .run = cmd_no_cluster, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
     .categories = "@slow", .group = "cluster", .since = "7.0.0",
     .summary = "Returns the masters with their replicas and slots.", .complexity = "O(N) for N nodes",
     .syntax = "CLUSTER SHARDS", .tips = "nondeterministic_output"},
    {.name = "slaves", .run = cmd_no_cluster, .arity = 3, .access = ACCESS_FREE, .flags = "admin stale deprecated",
     .categories = "@admin @slow @dangerous", .group = "cluster", .since = "3.0.0",
     .summary = "Returns the replicas of a node.", .complexity = "O(N) for N replicas",
     .syntax = "CLUSTER SLAVES node-id",
     .tips = "nondeterministic_output", .deprecated_since = "5.0.0", .replaced_by = "`CLUSTER REPLICAS`"},
    {.name = "slots", .run = cmd_no_cluster, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale deprecated",
     .categories = "@slow", .group = "cluster", .since = "3.0.0", .summary = "Returns the slots with their nodes.",
     .complexity = "O(N) for N nodes", .syntax = "CLUSTER SLOTS", .tips = "nondeterministic_output",
     .history = "4.0.0=Ids of nodes.|7.0.0=More about where nodes are found.",
     .deprecated_since = "7.0.0", .replaced_by = "`CLUSTER SHARDS`"},
    {0},
};
/* clang-format on */

/* clang-format off */
static const struct command_row module_subcommands[] = {
    {.name = "help", .run = cmd_module_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
     .categories = "@slow", .group = "server", .since = "5.0.0", .summary = "Explains the subcommands.",
     .complexity = "O(1)", .syntax = "MODULE HELP"},
    {.name = "list", .run = cmd_module_list, .arity = 2, .access = ACCESS_FREE, .flags = "admin noscript",
     .categories = "@admin @slow @dangerous", .group = "server", .since = "4.0.0",
     .summary = "Returns the loaded modules.", .complexity = "O(N) for N modules", .syntax = "MODULE LIST",
     .tips = "nondeterministic_output_order"},
    {.name = "load", .run = cmd_module_load, .arity = -3, .access = ACCESS_FREE,
     .flags = "admin noscript no_async_loading protected", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "4.0.0", .summary = "Loads a module.", .complexity = "O(1)",
     .syntax = "MODULE LOAD path [arg [arg ...]]"},
    {.name = "loadex", .run = cmd_module_load, .arity = -3, .access = ACCESS_FREE,
     .flags = "admin noscript no_async_loading protected", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "7.0.0", .summary = "Loads a module, with options.", .complexity = "O(1)",
     .syntax = "MODULE LOADEX path [CONFIG name value [CONFIG name value ...]] [ARGS arg [ARGS arg ...]]"},
    {.name = "unload", .run = cmd_module_unload, .arity = 3, .access = ACCESS_FREE,
     .flags = "admin noscript no_async_loading protected", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "4.0.0", .summary = "Unloads a module.", .complexity = "O(1)", .syntax = "MODULE UNLOAD name"},
    {0},
};
/* clang-format on */

/* clang-format off */
const struct command_row standalone_commands[] = {
    {.name = "asking", .run = cmd_no_cluster, .arity = 1, .access = ACCESS_FREE, .flags = "fast",
     .categories = "@fast @connection", .group = "cluster", .since = "3.0.0",
     .summary = "Lets the next command use a slot that this node imports.", .complexity = "O(1)",
     .syntax = "ASKING"},
    {.name = "cluster", .arity = -2, .access = ACCESS_FREE, .categories = "@slow", .group = "cluster",
     .since = "3.0.0", .summary = "Container for commands about a cluster.",
     .complexity = "Depends on the subcommand.", .syntax = "CLUSTER subcommand [arg ...]",
     .subcommands = cluster_subcommands},
    {.name = "module", .arity = -2, .access = ACCESS_FREE, .categories = "@slow", .group = "server",
     .since = "4.0.0", .summary = "Container for commands about modules.",
     .complexity = "Depends on the subcommand.", .syntax = "MODULE subcommand [arg ...]",
     .subcommands = module_subcommands},
    {.name = "readonly", .run = cmd_readonly, .arity = 1, .access = ACCESS_FREE, .flags = "loading stale fast",
     .categories = "@fast @connection", .group = "cluster", .since = "3.0.0",
     .summary = "Lets the connection read from a replica.", .complexity = "O(1)", .syntax = "READONLY"},
    {.name = "readwrite", .run = cmd_readwrite, .arity = 1, .access = ACCESS_FREE, .flags = "loading stale fast",
     .categories = "@fast @connection", .group = "cluster", .since = "3.0.0", .summary = "Ends READONLY.",
     .complexity = "O(1)", .syntax = "READWRITE"},
    {.name = "restore-asking", .run = cmd_no_cluster, .arity = -4, .access = ACCESS_FREE,
     .flags = "write denyoom asking syscmd absent", .categories = "@keyspace @write @slow @dangerous",
     .keys = "OW,UPDATE@index:1@range:0,1,0", .group = "server", .since = "3.0.0",
     .summary = "RESTORE, while a slot is moved.", .complexity = "O(N) for N elements",
     .syntax = "RESTORE-ASKING key ttl serialized-value"},
    {0},
};
/* clang-format on */
