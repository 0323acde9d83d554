/* PSYNC, SYNC, REPLCONF: what replicas send to their master. */
#include "commands/shared/families.h"

#include "active/node.h"
#include "active/sender.h"
#include "active/uuid.h"
#include "base/log.h"
#include "base/number.h"
#include "base/random.h"
#include "net/resp.h"
#include "replication/failover.h"
#include "replication/handshake.h"
#include "replication/history.h"
#include "replication/master.h"
#include "replication/replica_link.h"
#include "replication/replicas.h"
#include "server/core/request.h"
#include "server/core/role.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------ the stream -- */

/* Why the stream cannot be had now; NULL: it can. */
static const char *reason_against(const struct request *request)
{
    const struct client *client = request->client;

    if (failover_is_on())
        return "NOMASTERLINK Can't SYNC while failing over";
    if (master_is_away())
        return "NOMASTERLINK Can't SYNC while not connected with my master";
    if (conn_output_size(&client->conn) != 0)
        return "ERR SYNC and PSYNC are invalid with pending output";
    if (replica_is_filtered_without_eof(client))
        return "ERR Filtered replica requires EOF capability";
    if ((client->flags & (CLIENT_PUBSUB | CLIENT_TRACKING | CLIENT_REPLY_OFF)) != 0)
        return "ERR SYNC and PSYNC need a connection without subscriptions, tracking and CLIENT REPLY OFF";
    return NULL;
}

static bool may_begin(struct request *request)
{
    const char *reason = reason_against(request);

    if (reason != NULL)
        reply_error(request, reason);
    return reason == NULL;
}

/* It has the stream already, or the commands of all clients. */
static bool is_bound(const struct request *request)
{
    return (request->client->flags & (CLIENT_REPLICA | CLIENT_MONITOR)) != 0;
}

static bool is_failover(const struct request *request)
{
    return request->arg_count > 3 && request_arg_is(request, 3, "failover");
}

/* The master asks this server to take its place: it has everything, and the master's writes wait. */
static bool take_over(struct request *request)
{
    const struct slice id = request_arg(request, 1);
    struct history_facts history;

    log_notice("Failover request received for replid %.*s.", (int)MIN(id.size, (size_t)HISTORY_ID_SIZE), id.data);
    if (!role_follows()) {
        reply_error(request, "ERR PSYNC FAILOVER can't be sent to a master.");
        return false;
    }
    history_facts(&history);
    if (!slice_equal_text_nocase(id, history.id)) {
        reply_error(request, "ERR PSYNC FAILOVER replid must match my replid.");
        return false;
    }
    (void)master_leave();
    log_notice("MASTER MODE enabled (failover request from '%s')", request->client->card.address);
    return true;
}

/* With FAILOVER it changes the role. */
static enum access_class psync_access_of(const struct slice *args, uint32_t arg_count)
{
    return arg_count > 3 && slice_equal_text_nocase(args[3], "failover") ? ACCESS_EXCLUSIVE : ACCESS_GATED;
}

static void cmd_psync(struct request *request)
{
    struct slice id = request_arg(request, 1);
    int64_t offset;

    if (is_bound(request))
        return;
    if (is_failover(request) && !take_over(request))
        return;
    if (!may_begin(request))
        return;
    if (!request_arg_i64(request, 2, &offset)) {
        replica_log_wish(request->client, " but with a wrong offset");
        return;
    }
    replica_log_wish(request->client, "");
    if (replica_continue(request->client, id, MAX(offset, 0) - 1))
        return;
    if (id.size == 0 || id.data[0] != '?')
        replicas_note_refused();
    replica_begin_full(request->client, false);
}

static void cmd_sync(struct request *request)
{
    if (is_bound(request) || !may_begin(request))
        return;
    replica_log_wish(request->client, "");
    replica_begin_full(request->client, true);
}

/* ---------------------------------------------------------------------------------------------- about replicas -- */

/* KeyDB's servers tell each other theirs. One for each start. */
static const char *own_uuid(void)
{
    static char
        uuid[HANDSHAKE_UUID_BYTES + 1]; /* global: made once, by whichever thread asks first: REPLCONF uuid is rare */
    static struct spinlock lock = {.rank = LOCK_REGISTRY};

    spinlock_acquire(&lock);
    if (uuid[0] == '\0') {
        char digits[32];

        random_hex(digits, sizeof(digits));
        (void)snprintf(uuid, sizeof(uuid), "%.8s-%.4s-4%.3s-a%.3s-%.12s", digits, digits + 8, digits + 12, digits + 15,
                       digits + 18);
    }
    spinlock_release(&lock);
    return uuid;
}

enum outcome { GO_ON, DONE_WITH_OK, HAS_REPLIED };

static enum outcome set_port(struct request *request, uint32_t index)
{
    int64_t port;

    if (!request_arg_i64(request, index, &port))
        return HAS_REPLIED;
    replica_set_port(request->client, (int)port);
    return GO_ON;
}

static enum outcome set_ip(struct request *request, uint32_t index)
{
    struct slice ip = request_arg(request, index);

    if (ip.size > REPLICA_IP_MOST) {
        reply_errorf(request, "ERR REPLCONF ip-address provided by replica instance is too long: %zu bytes", ip.size);
        return HAS_REPLIED;
    }
    for (size_t i = 0; i < ip.size; i++) {
        if ((unsigned char)ip.data[i] <= ' ' || ip.data[i] == ',') {
            reply_error(request, "ERR REPLCONF ip-address has a character that no address has");
            return HAS_REPLIED;
        }
    }
    replica_set_ip(request->client, ip);
    return GO_ON;
}

static enum outcome add_capa(struct request *request, uint32_t index)
{
    static const struct {
        const char *name;
        unsigned capa;
    } known[] = {
        {"eof", REPLICA_CAPA_EOF},
        {"psync2", REPLICA_CAPA_PSYNC2},
        {"activeexpire", REPLICA_CAPA_KEYDB},
        {"rdb-newest", REPLICA_CAPA_NEWEST},
    };

    for (size_t i = 0; i < countof(known); i++) {
        if (request_arg_is(request, index, known[i].name))
            replica_add_capa(request->client, known[i].capa);
    }
    return GO_ON;
}

/* REPLCONF ACK offset [FACK offset]: there is never a reply. */
static enum outcome ack(struct request *request, uint32_t index)
{
    int64_t applied, synced = -1;

    if (!number_parse_i64(request_arg(request, index), &applied))
        return HAS_REPLIED;
    for (uint32_t i = index + 1; i + 1 < request->arg_count; i += 2) {
        if (request_arg_is(request, i, "fack") && !number_parse_i64(request_arg(request, i + 1), &synced))
            return HAS_REPLIED;
    }
    replica_ack(request->client, applied, synced);
    return HAS_REPLIED;
}

static enum outcome set_version(struct request *request, uint32_t index)
{
    replica_set_version(request->client, request_arg(request, index));
    return GO_ON;
}

static enum outcome set_snapshot_only(struct request *request, uint32_t index)
{
    int64_t is_set;

    if (!request_arg_range(request, index, 0, 1, &is_set, NULL))
        return HAS_REPLIED;
    replica_set_snapshot_only(request->client, is_set == 1);
    return GO_ON;
}

/* The words are those parts that the snapshot shall have; none: an empty one. */
static enum outcome set_filter(struct request *request, uint32_t index)
{
    struct slice words = request_arg(request, index);
    unsigned filter = REPLICA_WITHOUT_KEYS | REPLICA_WITHOUT_LIBRARIES;
    size_t at = 0;

    while (at < words.size) {
        size_t end = at;

        while (end < words.size && words.data[end] != ' ')
            end++;
        if (slice_equal_text_nocase(slice_make(words.data + at, end - at), "functions")) {
            filter &= ~(unsigned)REPLICA_WITHOUT_LIBRARIES;
        } else if (end != at) {
            reply_errorf(request, "ERR Unsupported rdb-filter-only option: %.*s", (int)MIN(end - at, (size_t)128),
                         words.data + at);
            return HAS_REPLIED;
        }
        at = end + 1;
    }
    replica_set_filter(request->client, filter);
    return GO_ON;
}

static enum outcome take_uuid(struct request *request, uint32_t index)
{
    char text[UUID_TEXT_BYTES + 1];
    struct uuid uuid;

    if (!handshake_is_uuid(request_arg(request, index))) {
        reply_error(request, "ERR Invalid UUID");
        return HAS_REPLIED;
    }
    replica_set_keydb(request->client, request_arg(request, index));
    if (active_is_on()) {
        uuid = uuid_of_id(node_origin());
        uuid_format(&uuid, text);
    }
    reply_status(request, active_is_on() ? text : own_uuid());
    return HAS_REPLIED;
}

/* An active node of ours: both sides speak frames behind the reply. */
static enum outcome begin_order(struct request *request, uint32_t index)
{
    const struct slice uuid = request_arg(request, index);

    if (!active_is_on())
        reply_error(request, "ERR this server is not an active replica");
    else if (!handshake_is_uuid(uuid))
        reply_error(request, "ERR Invalid UUID");
    else if (request->in_exec || request->client->transaction != NULL || is_bound(request))
        reply_error(request, "ERR REPLCONF one-order needs a connection of its own");
    else if (may_begin(request)) {
        reply_status(request, "ONE-ORDER");
        sender_begin(request->client, uuid);
    }
    return HAS_REPLIED;
}

static enum outcome getack(struct request *request, uint32_t index)
{
    (void)request;
    (void)index;
    return HAS_REPLIED; /* a master's: replicas get it in the stream */
}

static enum outcome accept_license(struct request *request, uint32_t index)
{
    (void)request;
    (void)index;
    return DONE_WITH_OK;
}

static enum outcome run_option(struct request *request, uint32_t index)
{
    static const struct {
        const char *name;
        enum outcome (*run)(struct request *request, uint32_t index);
    } options[] = {
        {"listening-port", set_port},
        {"ip-address", set_ip},
        {"capa", add_capa},
        {"ack", ack},
        {"getack", getack},
        {"rdb-only", set_snapshot_only},
        {"rdb-filter-only", set_filter},
        {"version", set_version},
        {"uuid", take_uuid},
        {"one-order", begin_order},
        {"license", accept_license},
    };
    struct slice name = request_arg(request, index);

    for (size_t i = 0; i < countof(options); i++) {
        if (request_arg_is(request, index, options[i].name))
            return options[i].run(request, index + 1);
    }
    reply_errorf(request, "ERR Unrecognized REPLCONF option: %.*s", (int)MIN(name.size, (size_t)128), name.data);
    return HAS_REPLIED;
}

/* A replica's output is the stream. It says what it has to say before that. */
static bool refused_as_linked(struct request *request)
{
    if ((request->client->flags & CLIENT_REPLICA) == 0 ||
        (request->arg_count > 2 && (request_arg_is(request, 1, "ack") || request_arg_is(request, 1, "getack"))))
        return false;
    log_warning("Replica id=%llu sent a REPLCONF that has a reply, disconnecting it",
                (unsigned long long)request->client->id);
    conn_close(&request->client->conn);
    return true;
}

static bool says_capa(const struct request *request, const char *word)
{
    for (uint32_t i = 1; i < request->arg_count; i += 2) {
        if (request_arg_is(request, i, "capa") && request_arg_is(request, i + 1, word))
            return true;
    }
    return false;
}

static void cmd_replconf(struct request *request)
{
    enum outcome outcome = GO_ON;

    if (refused_as_linked(request))
        return;
    if (request->arg_count % 2 == 0) {
        reply_syntax_error(request);
        return;
    }
    for (uint32_t i = 1; i < request->arg_count && outcome == GO_ON; i += 2)
        outcome = run_option(request, i);
    if (outcome == HAS_REPLIED)
        return;
    if (active_is_on() && says_capa(request, HANDSHAKE_ORDER_WORD))
        reply_status(request, "OK " HANDSHAKE_ACTIVE_WORD " " HANDSHAKE_ORDER_WORD);
    else if (active_is_on() && says_capa(request, "activeExpire") && !says_capa(request, "rdb-newest"))
        reply_status(request, "OK " HANDSHAKE_ACTIVE_WORD); /* a KeyDB server; it lets keys expire by itself then */
    else
        reply_ok(request);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row replication_master_commands[] = {
    {.name = "psync", .run = cmd_psync, .arity = -3, .access = ACCESS_GATED, .access_of = psync_access_of,
     .flags = "admin noscript no_async_loading no_multi", .categories = "@admin @slow @dangerous",
     .group = "server", .since = "2.8.0", .summary = "A replica asks for the stream of changes.",
     .syntax = "PSYNC replicationid offset"},
    {.name = "replconf", .run = cmd_replconf, .arity = -1, .access = ACCESS_FREE,
     .flags = "admin noscript loading stale allow_busy syscmd", .categories = "@admin @slow @dangerous",
     .group = "server", .since = "3.0.0", .summary = "A replica tells of itself.", .complexity = "O(1)",
     .syntax = "REPLCONF"},
    {.name = "sync", .run = cmd_sync, .arity = 1, .access = ACCESS_GATED,
     .flags = "admin noscript no_async_loading no_multi", .categories = "@admin @slow @dangerous",
     .group = "server", .since = "1.0.0", .summary = "A replica asks for everything.", .syntax = "SYNC"},
    {0},
};
/* clang-format on */
