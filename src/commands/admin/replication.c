/* ROLE, WAIT, FAILOVER: what a group of servers looks like from here, and waiting for it. */
#include "commands/shared/families.h"

#include "active/options.h"
#include "active/overview.h"
#include "base/array.h"
#include "base/number.h"
#include "replication/failover.h"
#include "replication/history.h"
#include "replication/master.h"
#include "replication/replicas.h"
#include "replication/wait.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/role.h"

#include <stdio.h>

/* --------------------------------------------------------------------------------------------------------- ROLE -- */

static const char *const state_words[] = {[MASTER_CONNECT] = "connect",
                                          [MASTER_CONNECTING] = "connecting",
                                          [MASTER_HANDSHAKE] = "handshake",
                                          [MASTER_SYNC] = "sync",
                                          [MASTER_CONNECTED] = "connected"};

static void role_of_replica(struct request *request, const struct master_facts *master)
{
    reply_array(request, 5);
    reply_text(request, "slave");
    reply_text(request, master->host);
    reply_int(request, master->port);
    reply_text(request, state_words[master->state]);
    reply_int(request, master->state == MASTER_CONNECTED ? master->applied_offset : -1);
}

/* Copied, since the list has a lock. */
struct role_lines {
    struct role_line {
        char ip[64];
        int port;
        int64_t offset;
    } * items;
    size_t count, capacity;
};

static void add_line(const struct replica_facts *facts, void *context)
{
    struct role_lines *lines = context;
    struct role_line *line;

    if (facts->state != REPLICA_ONLINE)
        return;
    line = ARRAY_PUSH(lines);
    snprintf(line->ip, sizeof(line->ip), "%s", facts->ip);
    line->port = facts->port;
    line->offset = facts->acked_offset;
}

static void reply_number_text(struct request *request, int64_t number)
{
    char text[NUMBER_I64_SPACE];

    reply_bulk(request, slice_make(text, number_format_i64(text, number)));
}

static void role_of_master(struct request *request)
{
    struct role_lines lines = {0};

    replicas_each(add_line, &lines);
    reply_array(request, 3);
    reply_text(request, "master");
    reply_int(request, history_offset());
    reply_array(request, lines.count);
    for (size_t i = 0; i < lines.count; i++) {
        reply_array(request, 3);
        reply_text(request, lines.items[i].ip);
        reply_number_text(request, lines.items[i].port);
        reply_number_text(request, lines.items[i].offset);
    }
    ARRAY_FINI(&lines);
}

/* As a replica's; several masters as an array of such. */
static void role_of_active(struct request *request)
{
    struct overview overview;
    size_t count = 0;

    overview_take(&overview, request->access->now_ms);
    while (count < overview.count && overview.items[count].has_link)
        count++;
    if (count != 1)
        reply_array(request, count);
    for (size_t i = 0; i < count; i++) {
        const struct link_facts *link = &overview.items[i].link;

        reply_array(request, 5);
        reply_text(request, "active-replica");
        reply_text(request, link->host);
        reply_int(request, link->port);
        reply_text(request, state_words[link->state]);
        reply_int(request, link->state == MASTER_CONNECTED ? history_offset() : -1);
    }
    overview_fini(&overview);
}

static void cmd_role(struct request *request)
{
    struct master_facts master;

    master_facts(&master);
    if (role_is_active())
        role_of_active(request);
    else if (master.follows)
        role_of_replica(request, &master);
    else
        role_of_master(request);
}

/* --------------------------------------------------------------------------------------------------------- WAIT -- */

static void reply_count(struct client *client, const struct wait_state *state)
{
    resp_write_int(&client->conn.output, state->replica_count);
}

static void cmd_wait(struct request *request)
{
    struct client *client = request->client;
    int64_t replicas, timeout_ms;
    unsigned count;

    if (role_follows()) {
        reply_error(request,
                    "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a "
                    "replica is configured to be writable (which is not the default) writes to replicas are "
                    "just local and are not propagated.");
        return;
    }
    if (!request_arg_i64(request, 1, &replicas))
        return;
    if (!number_parse_i64(request_arg(request, 2), &timeout_ms)) {
        reply_error(request, "ERR timeout is not an integer or out of range");
        return;
    }
    if (timeout_ms < 0) {
        reply_error(request, "ERR timeout is negative");
        return;
    }
    count = wait_look(client->written_offset, REPLICAS_APPLIED).replica_count;
    if (count >= replicas || request->in_exec) {
        reply_int(request, count);
        return;
    }
    request->blocked = true;
    wait_begin(client, &(struct wait_wish){.offset = client->written_offset,
                                           .replica_count = replicas,
                                           .proof = REPLICAS_APPLIED,
                                           .timeout_ms = timeout_ms,
                                           .reply = reply_count});
}

/* ----------------------------------------------------------------------------------------------------- FAILOVER -- */

/* False: it has replied. */
static bool parse_failover(struct request *request, struct failover_wish *wish)
{
    for (uint32_t i = 1; i < request->arg_count; i++) {
        const uint32_t left = request->arg_count - i - 1;

        if (request_arg_is(request, i, "timeout") && left >= 1 && !wish->has_timeout) {
            if (!request_arg_i64(request, ++i, &wish->timeout_ms))
                return false;
            if (wish->timeout_ms <= 0) {
                reply_error(request, "ERR FAILOVER timeout must be greater than 0");
                return false;
            }
            wish->has_timeout = true;
        } else if (request_arg_is(request, i, "to") && left >= 2 && wish->host.size == 0) {
            int64_t port;

            wish->host = request_arg(request, i + 1);
            if (!request_arg_i64(request, i + 2, &port))
                return false;
            wish->port = port >= 0 && port <= 65535 ? (int)port : -1;
            i += 2;
        } else if (request_arg_is(request, i, "force") && !wish->force) {
            wish->force = true;
        } else {
            reply_syntax_error(request);
            return false;
        }
    }
    return true;
}

static void cmd_failover(struct request *request)
{
    struct failover_wish wish = {0};
    const char *reason;

    if (OPTION_IS(option_active_replica)) {
        reply_error(request, "ERR FAILOVER not allowed in active replication mode");
        return;
    }
    if (request->arg_count == 2 && request_arg_is(request, 1, "abort")) {
        if (failover_abort())
            reply_ok(request);
        else
            reply_error(request, "ERR No failover in progress.");
        return;
    }
    if (!parse_failover(request, &wish))
        return;
    reason = failover_begin(request->worker, &wish);
    if (reason != NULL)
        reply_error(request, reason);
    else
        reply_ok(request);
}

/* clang-format off */
const struct command_row replication_commands[] = {
    {.name = "failover", .run = cmd_failover, .arity = -1, .flags = "admin noscript stale",
     .categories = "@admin @slow @dangerous", .group = "server", .since = "6.2.0",
     .summary = "Makes a replica take the place of this server.", .complexity = "O(1)",
     .syntax = "FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]"},
    {.name = "role", .run = cmd_role, .arity = 1, .access = ACCESS_FREE, .flags = "noscript loading stale fast",
     .categories = "@admin @fast @dangerous", .group = "server", .since = "2.8.12",
     .summary = "Returns the role of this server in replication.", .complexity = "O(1)", .syntax = "ROLE"},
    {.name = "wait", .run = cmd_wait, .arity = 3, .access = ACCESS_FREE, .flags = "blocking",
     .categories = "@slow @blocking @connection", .group = "generic", .since = "3.0.0",
     .summary = "Waits until replicas have all earlier writes of the connection.", .complexity = "O(1)",
     .syntax = "WAIT numreplicas timeout", .tips = "request_policy:all_shards response_policy:agg_min"},
    {0},
};
/* clang-format on */
