/* KEYDB.ACTIVE: the group of an active node. */
#include "commands/shared/families.h"

#include "active/compare.h"
#include "active/options.h"
#include "active/overview.h"
#include "active/readiness.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "replication/wait.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/server.h"

#include <inttypes.h>
#include <stdio.h>

static void reply_not_active(struct request *request)
{
    reply_error(request, "ERR This server is not an active replica");
}

/* False: it has replied. */
static bool expect_active(struct request *request)
{
    const bool is_on = active_is_on();

    if (!is_on)
        reply_not_active(request);
    return is_on;
}

/* ---------------------------------------------------------------------------------------------------- arguments -- */

/* 0: no member has this name; it has replied. */
static uint64_t find_member(struct request *request, const struct uuid *name)
{
    struct node_facts facts;
    uint64_t found = 0;

    node_facts(&facts);
    for (uint32_t i = 0; i < facts.member_count; i++) {
        const struct uuid other = uuid_of_id(facts.members[i].name);

        if (!uuid_equal(&other, name))
            continue;
        found = facts.members[i].name;
        if (facts.members[i].is_self) {
            node_facts_fini(&facts);
            reply_error(request, "ERR That is this node: name another one, or ask another one");
            return 0;
        }
    }
    node_facts_fini(&facts);
    if (found == 0)
        reply_error(request, "ERR No member has this name");
    return found;
}

/* The same with a name as text. */
static uint64_t take_member(struct request *request, struct slice text)
{
    struct uuid name;

    if (uuid_parse(text, &name))
        return find_member(request, &name);
    reply_error(request, "ERR A name is a UUID: KEYDB.ACTIVE PEERS shows them");
    return 0;
}

/* In milliseconds; 0: no limit. False: it has replied. */
static bool take_timeout(struct request *request, int64_t *timeout_ms)
{
    if (!number_parse_i64(request_arg(request, 2), timeout_ms))
        reply_error(request, "ERR timeout is not an integer or out of range");
    else if (*timeout_ms < 0)
        reply_error(request, "ERR timeout is negative");
    else
        return true;
    return false;
}

/* -------------------------------------------------------------------------------------------------------- PEERS -- */

static void reply_pair(struct request *request, const char *name, int64_t number)
{
    reply_text(request, name);
    reply_int(request, number);
}

static void reply_peer(struct request *request, const struct overview *overview, const struct overview_peer *peer)
{
    const struct node_member *member = &peer->member;

    reply_map(request, 11);
    reply_text(request, "name");
    reply_text(request, peer->name);
    reply_text(request, "host");
    reply_text(request, peer->has_link ? peer->link.host : "");
    reply_pair(request, "port", peer->has_link ? peer->link.port : 0);
    reply_text(request, "link");
    reply_text(request, overview_link_word(peer));
    reply_pair(request, "member", peer->is_member);
    reply_pair(request, "given-up", peer->is_member && member->is_given_up);
    reply_pair(request, "silent-ms", peer->is_member ? member->silent_ms : -1);
    reply_pair(request, "skew-ms", peer->is_member ? member->skew_ms : 0);
    reply_pair(request, "lag-ms", overview_age_ms(overview, peer->is_member ? member->here : 0));
    reply_pair(request, "behind-ms", overview_age_ms(overview, peer->is_member ? member->there : 0));
    reply_pair(request, "received", peer->has_link ? (int64_t)peer->link.entries : 0);
}

static void cmd_active_peers(struct request *request)
{
    struct overview overview;

    if (!expect_active(request))
        return;
    overview_take(&overview, request->access->now_ms);
    reply_array(request, overview.count);
    for (size_t i = 0; i < overview.count; i++)
        reply_peer(request, &overview, &overview.items[i]);
    overview_fini(&overview);
}

/* -------------------------------------------------------------------------------------------------------- READY -- */

/* For health checks: +READY, or -NOTREADY and the reason. */
static void cmd_active_ready(struct request *request)
{
    const enum readiness state = readiness_now();

    if (!OPTION_IS(option_active_replica))
        reply_not_active(request);
    else if (state == READINESS_FULL)
        reply_status(request, "READY");
    else
        reply_errorf(request, "NOTREADY %s", readiness_text(state));
}

/* --------------------------------------------------------------------------------------------------------- WAIT -- */

/* Who has all that this node has written up to that stamp, as their beats say. */
static struct wait_state look(uint64_t stamp)
{
    struct wait_state state = {0};
    struct node_facts facts;

    node_facts(&facts);
    for (uint32_t i = 0; i < facts.member_count; i++) {
        if (facts.members[i].is_self)
            continue;
        if (facts.members[i].there >= stamp)
            state.replica_count++;
        else
            state.lacking_count++;
    }
    node_facts_fini(&facts);
    return state;
}

static void put_state(struct output *out, const struct wait_state *state)
{
    resp_write_array(out, 2, 2);
    resp_write_int(out, state->replica_count);
    resp_write_int(out, state->lacking_count);
}

static void reply_later(struct client *client, const struct wait_state *state)
{
    put_state(&client->conn.output, state);
}

/* What the node wrote last is not older than what this client did. */
static uint64_t written_stamp(const struct client *client)
{
    return client->written_offset == 0 ? 0 : journal_last_stamp(&server_instance()->journal);
}

static void cmd_active_wait(struct request *request)
{
    struct client *client = request->client;
    struct wait_wish wish = {.look = look, .reply = reply_later};
    struct wait_state state;

    if (!expect_active(request) || !take_timeout(request, &wish.timeout_ms))
        return;
    wish.stamp = written_stamp(client);
    state = look(wish.stamp);
    if (state.lacking_count == 0 || request->in_exec) {
        put_state(request->out, &state);
        return;
    }
    request->blocked = true;
    wait_begin(client, &wish);
}

/* ------------------------------------------------------------------------------------------------------ COMPARE -- */

static struct wait_state look_at_comparison(uint64_t number)
{
    return (struct wait_state){.lacking_count = compare_is_done(number) ? 0 : 1};
}

static void put_number(struct output *out, const char *name, uint64_t number)
{
    resp_write_bulk(out, slice_from_text(name));
    resp_write_int(out, (int64_t)number);
}

static void put_text(struct output *out, const char *name, const char *text)
{
    resp_write_bulk(out, slice_from_text(name));
    resp_write_bulk(out, slice_from_text(text));
}

static void put_target(struct output *out, int proto, const struct compare_target *target)
{
    const struct uuid uuid = uuid_of_id(target->name);
    char name[UUID_TEXT_BYTES + 1];

    uuid_format(&uuid, name);
    resp_write_map(out, proto, 6);
    put_text(out, "name", name);
    put_text(out, "state", compare_state_name(target->state));
    put_number(out, "equal", target->equal);
    put_number(out, "different", target->different);
    put_number(out, "undecided", target->undecided);
    put_number(out, "keys", target->keys);
}

static void reply_comparison(struct client *client, const struct wait_state *state)
{
    struct compare_report *report = mem_alloc(sizeof(*report));

    (void)state;
    compare_report(report);
    resp_write_array(&client->conn.output, client->proto, report->count);
    for (uint32_t i = 0; i < report->count; i++)
        put_target(&client->conn.output, client->proto, &report->targets[i]);
    mem_free(report);
}

static void cmd_active_compare(struct request *request)
{
    struct wait_wish wish = {.look = look_at_comparison, .reply = reply_comparison};
    uint64_t member = 0;

    if (!expect_active(request) || !take_timeout(request, &wish.timeout_ms))
        return;
    if (request->arg_count > 4) {
        reply_error(request, "ERR syntax error");
        return;
    }
    if (request->arg_count == 4 && (member = take_member(request, request_arg(request, 3))) == 0)
        return;
    if (!compare_begin(member, &wish.stamp)) {
        reply_error(request, "ERR A comparison is going on already");
        return;
    }
    if (request->in_exec) {
        reply_array(request, 0);
        return;
    }
    request->blocked = true;
    wait_begin(request->client, &wish);
}

/* ------------------------------------------------------------------------------------------------------- FORGET -- */

/* What it costs. */
static void reply_forgotten(struct request *request, uint32_t ignorant)
{
    char text[160];

    if (ignorant == 0) {
        reply_ok(request);
        return;
    }
    (void)snprintf(text, sizeof(text),
                   "OK, but %" PRIu32 " of the members that remain did not know all others: writes that they have not "
                   "heard of yet may be lost",
                   ignorant);
    log_warning("%s", text + sizeof("OK, but ") - 1);
    reply_status(request, text);
}

static void cmd_active_forget(struct request *request)
{
    const struct slice text = request_arg(request, 2);
    const bool is_forced = request->arg_count == 4;
    uint32_t ignorant = 0;
    uint64_t member;

    if (!expect_active(request))
        return;
    if (request->arg_count > 4 || (is_forced && !slice_equal_text_nocase(request_arg(request, 3), "force"))) {
        reply_error(request, "ERR syntax error");
        return;
    }
    member = take_member(request, text);
    if (member == 0)
        return;
    if (is_forced) {
        ignorant = node_forget_by_force(member);
    } else if (!node_forget(member)) {
        reply_error(request, "ERR Another member does not know all others yet: try again when all links are up, or "
                             "with FORCE, after which writes of those that it does not know may be lost");
        return;
    }
    log_notice("Member %.*s is forgotten for good (user request from %s)", (int)text.size, text.data,
               request->client != NULL ? request->client->card.address : "?");
    reply_forgotten(request, ignorant);
}

static void cmd_active_help(struct request *request)
{
    static const char *const lines[] = {
        "COMPARE <timeout> [<name>]",
        "    Compare the data of this node with those of a member, or of all, by digests of hash slots. Keys that",
        "    differ are written anew. Wait for so many milliseconds; 0: no limit.",
        "    Return for each member how many slots are equal, differ, or cannot be told as they change.",
        "FORGET <name> [FORCE]",
        "    Close a member for good: nobody waits for it any more. On any one node. FORCE: also while another member",
        "    does not know all others yet; what those write may be lost then.",
        "PEERS",
        "    Return the masters of this node with their links, and the other members of the group.",
        "READY",
        "    Return READY if clients should come to this node, else an error with the reason.",
        "WAIT <timeout>",
        "    Wait until all members have what this connection has written, for so many milliseconds; 0: no limit.",
        "    Return how many have it, and how many lack it.",
    };

    reply_help(request, lines, countof(lines));
}

/* clang-format off */
static const struct command_row active_subcommands[] = {
    {.name = "compare", .run = cmd_active_compare, .arity = -3, .access = ACCESS_FREE, .flags = "admin noscript",
     .categories = "@admin @slow @dangerous", .group = "server", .since = "7.0.0",
     .summary = "Compares the data of this node with those of other members of its group.",
     .complexity = "O(N) for N keys, in the background", .syntax = "KEYDB.ACTIVE COMPARE timeout [name]",
     .tips = "nondeterministic_output"},
    {.name = "forget", .run = cmd_active_forget, .arity = -3, .access = ACCESS_FREE, .flags = "admin noscript stale",
     .categories = "@admin @slow @dangerous", .group = "server", .since = "7.0.0",
     .summary = "Closes a member of the group for good.", .complexity = "O(N) for N members",
     .syntax = "KEYDB.ACTIVE FORGET name [FORCE]"},
    {.name = "help", .run = cmd_active_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
     .categories = "@slow", .group = "server", .since = "7.0.0", .summary = "Explains the subcommands.",
     .complexity = "O(1)", .syntax = "KEYDB.ACTIVE HELP"},
    {.name = "peers", .run = cmd_active_peers, .arity = 2, .access = ACCESS_FREE, .flags = "admin stale",
     .categories = "@admin @slow @dangerous", .group = "server", .since = "7.0.0",
     .summary = "Returns the masters of an active node, and the other members of its group.",
     .complexity = "O(N) for N members", .syntax = "KEYDB.ACTIVE PEERS", .tips = "nondeterministic_output"},
    {.name = "ready", .run = cmd_active_ready, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale fast",
     .categories = "@fast @connection", .group = "server", .since = "7.0.0",
     .summary = "Says whether clients should come to this node.", .complexity = "O(1)",
     .syntax = "KEYDB.ACTIVE READY", .tips = "nondeterministic_output"},
    {.name = "wait", .run = cmd_active_wait, .arity = 3, .access = ACCESS_FREE, .flags = "noscript",
     .categories = "@slow @connection", .group = "server", .since = "7.0.0",
     .summary = "Waits until all members have all earlier writes of the connection.",
     .complexity = "O(N) for N members", .syntax = "KEYDB.ACTIVE WAIT timeout"},
    {0},
};

const struct command_row active_commands[] = {
    {.name = "keydb.active", .arity = -2, .access = ACCESS_FREE, .categories = "@slow", .group = "server",
     .since = "7.0.0", .summary = "Container for commands about a group of active nodes.",
     .complexity = "Depends on the subcommand.", .syntax = "KEYDB.ACTIVE subcommand [arg ...]",
     .subcommands = active_subcommands},
    {0},
};
/* clang-format on */
