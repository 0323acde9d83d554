/* DEBUG FORCE-MASTER and RREPLAY: a client speaks as an active KeyDB server does on a link, envelope by envelope. What
 * is new of them is placed, as that of a link is (active/keydb_stream.h); here with the gate owned, at once. */
#include "commands/debug/debug_priv.h"

#include "active/keydb_entries.h"
#include "active/node.h"
#include "active/place.h"
#include "commands/shared/families.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "store/undo.h"

enum { TRANSACTION_MOST_BYTES = 64 << 20 };

/* global, guarded by the gate: of all such clients. Those of links are worker 0's; what came by one of them is known by
 * its stamp. */
static struct {
    struct envelopes *envelopes; /* NULL: none came yet */
    struct adoption_origin origin;
    struct keydb_entries entries;
    struct place place;
} replay;

void debug_replay_close(void)
{
    gate_assert_alone();
    envelopes_destroy(&replay.envelopes);
    keydb_entries_fini(&replay.entries);
    place_fini(&replay.place);
}

/* KeyDB also adds a master for `yes`; here a connection is no link. */
static void debug_force_master(struct request *request)
{
    const uint32_t flag = CLIENT_AS_MASTER;

    if (request_arg_is(request, 2, "yes") || request_arg_is(request, 2, "flagonly"))
        request->client->flags |= flag;
    else
        request->client->flags &= ~flag;
    reply_ok(request);
}

static void place_entries(struct request *request)
{
    const struct keydb_entries *entries = &replay.entries;

    if (undo_is_recording(request->access)) /* nothing of this command is to be taken back */
        undo_end(request->access);
    place_begin(&replay.place, request->worker, true);
    for (uint32_t i = 0; i < entries->count; i++)
        place_entry(&replay.place, &entries->items[i], NULL);
    place_end(&replay.place);
    for (uint32_t i = 0; i < entries->count; i++)
        node_count_alone(entries->items[i].origin, entries->items[i].stamp);
}

/* What its commands reply is not told, as KeyDB does not. What is here already is OK, too; there KeyDB says nothing. */
static void replay_envelope(struct request *request)
{
    const struct uuid own = uuid_of_id(node_origin());
    const unsigned db_count = request->worker->server->store->database_count;
    char error[ENVELOPE_ERROR_BYTES];
    unsigned db = request->db;

    if (replay.envelopes == NULL)
        replay.envelopes = envelopes_create(&own, db_count, TRANSACTION_MOST_BYTES);
    adoption_origin_init(&replay.origin);
    replay.entries.origin = &replay.origin;
    if (envelopes_take(replay.envelopes, request->args, request->arg_count, &db, keydb_entries_take, &replay.entries,
                       error) == ENVELOPE_FAILED) {
        reply_errorf(request, "ERR %s", error);
        return;
    }
    keydb_entries_finish(&replay.entries);
    if (replay.entries.count != 0)
        place_entries(request);
    keydb_entries_clear(&replay.entries);
    request->client->db = db;
    reply_ok(request);
}

static void cmd_rreplay(struct request *request)
{
    const uint32_t flags = request->client->flags;

    effect_none(request);
    if ((flags & CLIENT_AS_MASTER) == 0)
        reply_error(request, "ERR Command must be sent from a master");
    else if ((flags & CLIENT_RESTRICTED) != 0)
        reply_error(request, "NOPERM What a master sends runs with all permissions");
    else if (!active_is_on())
        reply_error(request, "ERR This server is not an active replica");
    else
        replay_envelope(request);
}

const struct debug_row debug_replay_rows[] = {
    {"force-master", "(YES|FLAGONLY|<word>)",
     "Let this connection send RREPLAY, as a master that is an active KeyDB server does. Any other word ends that.",
     debug_force_master, 3, 3, ACCESS_FREE, 0, 0},
    {0},
};

/* clang-format off */
const struct command_row debug_replay_commands[] = {
    {.name = "rreplay", .run = cmd_rreplay, .arity = -3, .access = ACCESS_EXCLUSIVE,
     .flags = "readonly noscript stale fast no_multi alone", .categories = "@read @fast", .group = "server",
     .since = "0.9.5", .summary = "Active replicas: commands that another server has run.",
     .complexity = "That of the commands.", .syntax = "RREPLAY uuid commands [db [timestamp]]"},
    {0},
};
/* clang-format on */
