#include "replication/replica_link.h"

#include "base/clock.h"
#include "base/fence.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/status.h"
#include "replication/backlog.h"
#include "replication/full_sync.h"
#include "replication/handshake.h"
#include "replication/history.h"
#include "replication/options.h"
#include "replication/replica_priv.h"
#include "server/core/client.h"
#include "server/core/server.h"
#include "server/upkeep/journal_limits.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

/* So much may be sent before the replica is asked how far it is. Otherwise its place would stand a second's writes
 * behind, and these would go to the file. */
#define ASK_BYTES (UINT64_C(8) << 20)

enum { SECOND_US = 1000 * 1000, READER_FLAGS = JOURNAL_READER_SPILLS | JOURNAL_READER_NEVER_WAITS };
enum { PLACE_FLAGS = READER_FLAGS | JOURNAL_READER_PLACE };

static const struct follower_kind replica_kind;

/* ------------------------------------------------------------------------------------------------------- facts -- */

static struct replica *of(struct client *client)
{
    struct replica *link = client->replica;

    client_assert_owned(client);
    if (link != NULL)
        return link;
    link = client->replica = mem_alloc_zero(sizeof(*link));
    list_node_init(&link->node);
    follower_init(&link->follower, &replica_kind, client);
    link->client = client;
    link->worker = client->worker;
    link->client_id = client->id;
    link->pacing.is_excused = true; /* until it has caught up once */
    atomic_init(&link->synced, -1);
    return link;
}

void replica_set_ip(struct client *client, struct slice ip)
{
    struct replica *link = of(client);
    char *fresh = NULL, *old;

    assert(ip.size <= REPLICA_IP_MOST);
    if (ip.size != 0) {
        fresh = mem_alloc_zero(ip.size + 1);
        memcpy(fresh, ip.data, ip.size);
    }
    spinlock_acquire(&replicas_lock);
    old = link->said_ip;
    link->said_ip = fresh;
    spinlock_release(&replicas_lock);
    mem_free(old);
}

void replica_set_port(struct client *client, int port)
{
    struct replica *link = of(client);

    spinlock_acquire(&replicas_lock);
    link->port = port;
    spinlock_release(&replicas_lock);
}

void replica_set_keydb(struct client *client, struct slice uuid)
{
    struct replica *link = of(client);

    assert(uuid.size == 0 || uuid.size == HANDSHAKE_UUID_BYTES);
    if (uuid.size != 0)
        memcpy(link->uuid, uuid.data, uuid.size);
    spinlock_acquire(&replicas_lock);
    link->is_keydb = true;
    spinlock_release(&replicas_lock);
}

void replica_add_capa(struct client *client, unsigned capa)
{
    of(client)->capa |= capa;
    if ((capa & (REPLICA_CAPA_KEYDB | REPLICA_CAPA_NEWEST)) != 0)
        replica_set_keydb(client, SLICE_EMPTY);
}

/* Redis says none; what this server and KeyDB read is known otherwise. */
void replica_set_version(struct client *client, struct slice version)
{
    enum { LEAST_MAJOR = 9 }; /* Valkey 8 reads what Redis 7.2 does */
    const char *dot = version.size != 0 ? memchr(version.data, '.', version.size) : NULL;
    int64_t major;

    if (dot != NULL && number_parse_i64(slice_make(version.data, (size_t)(dot - version.data)), &major) &&
        major >= LEAST_MAJOR)
        replica_add_capa(client, REPLICA_CAPA_VALKEY);
}

bool replica_is_valkey(const struct replica *link)
{
    return (link->capa & REPLICA_CAPA_VALKEY) != 0 && !link->is_keydb;
}

bool replica_is_plain_keydb(const struct replica *link)
{
    return link->is_keydb && (link->capa & REPLICA_CAPA_NEWEST) == 0;
}

static const struct replica_wrapping *wrapping; /* const after setup */

void replica_link_set_wrapping(const struct replica_wrapping *how)
{
    thread_assert_main();
    wrapping = how;
}

static void open_wrap(struct replica *link)
{
    if (link->wrap == NULL && wrapping != NULL && replica_is_plain_keydb(link))
        link->wrap = wrapping->open(slice_from_text(link->uuid));
}

void replica_set_snapshot_only(struct client *client, bool is_set)
{
    of(client)->snapshot_only = is_set;
}

void replica_set_filter(struct client *client, unsigned filter)
{
    of(client)->filter = filter;
}

bool replica_is_filtered_without_eof(const struct client *client)
{
    const struct replica *link = client->replica;

    client_assert_owned(client);
    return link != NULL && link->filter != 0 && (link->capa & REPLICA_CAPA_EOF) == 0;
}

const char *replica_name(const struct replica *link, char *room, size_t size)
{
    (void)snprintf(room, size, "%s:%d", link->said_ip != NULL ? link->said_ip : link->peer_ip, link->port);
    return room;
}

/* ------------------------------------------------------------------------------------------------------ stream -- */

void replica_close(struct replica *link, const char *why)
{
    char name[REPLICA_IP_MOST + 16];

    if (conn_is_closing(&link->client->conn))
        return;
    if (why != NULL)
        log_warning("Disconnecting replica %s: %s", replica_name(link, name, sizeof(name)), why);
    conn_close(&link->client->conn);
}

static bool view_is_written(const struct replica *link)
{
    return link->view_done == link->view.bytes.size && link->view_blob == link->view.blob_count;
}

/* Writes the next part of the record, copies at most `room` bytes, and returns how many bytes it has written. */
static size_t write_part(struct replica *link, size_t room)
{
    struct output *output = &link->client->conn.output;
    const struct journal_view *view = &link->view;
    const struct effect_blob *blob = link->view_blob < view->blob_count ? &view->blobs[link->view_blob] : NULL;
    size_t end = blob != NULL ? blob->position : view->bytes.size, size = MIN(end - link->view_done, room);

    if (size != 0) {
        output_append(output, view->bytes.data + link->view_done, size);
        link->view_done += size;
        return size;
    }
    assert(blob != NULL);
    link->view_blob++;
    output_append_blob(output, blob->blob, 0, blob->blob->size);
    return blob->blob->size;
}

static void note_held(struct replica *link)
{
    const struct output *output = &link->client->conn.output;

    replicas_note_held(link, output_is_empty(output) ? 0 : output_memory_estimate(output));
}

static void ask_if_far(struct replica *link)
{
    const uint64_t at = journal_reader_offset(&link->reader), limit = (uint64_t)link->lag_limit_bytes;
    const uint64_t most = limit != 0 ? MIN(ASK_BYTES, limit / 4) : ASK_BYTES;

    if (LIKELY(at - link->asked_offset <= most) || link->place == NULL)
        return;
    link->asked_offset = at;
    replicas_ask_offsets(link->worker);
}

/* True if it has read everything. */
static bool pump(struct replica *link)
{
    struct conn *conn = &link->client->conn;
    size_t size = conn_output_size(conn), before = size;
    bool is_idle = false;

    while (size < FOLLOWER_AHEAD_BYTES) {
        if (UNLIKELY(link->wrap != NULL) && link->view.bytes.size != 0) {
            size += wrapping->write(link->wrap, &link->view, journal_reader_offset(&link->reader),
                                    &link->client->conn.output);
            link->view = (struct journal_view){0};
        }
        if (view_is_written(link)) {
            if (!journal_reader_next(&link->reader, &link->view)) {
                is_idle = link->reader.fetch == NULL;
                link->view = (struct journal_view){0};
                link->view_done = link->view_blob = 0;
                break;
            }
            link->view_done = link->view_blob = 0;
            if (UNLIKELY(link->view.bytes.size == 0 && link->view.blob_count == 0))
                continue;
        }
        if (LIKELY(link->wrap == NULL))
            size += write_part(link, FOLLOWER_AHEAD_BYTES - size);
    }
    if (size != before) {
        replicas_count_output(size - before);
        note_held(link);
        ask_if_far(link);
        conn_write_pending(conn);
    }
    if (size != 0)
        conn_want_drained(conn);
    if (UNLIKELY(link->reader.is_lost)) {
        replica_close(link, "it is too far behind, the stream was not kept for it");
        return false;
    }
    link->is_idle = is_idle;
    return is_idle;
}

/* -------------------------------------------------------------------------------------------- writers that wait -- */

static uint64_t lag_of(const struct replica *link, uint64_t end)
{
    const uint64_t at = journal_reader_offset(&link->place->reader);

    return end > at ? end - at : 0;
}

/* Beyond it writers are slowed down: the rest of the memory is for the time until that works. */
static uint64_t pacing_limit(void)
{
    return journal_limits_memory() / 2;
}

static void limit_lag(struct replica *link, int64_t wanted)
{
    const int64_t pace = (int64_t)pacing_limit();
    const bool is_paced = link->pacing.holds && (wanted == 0 || wanted > pace);

    if (is_paced)
        wanted = pace;
    if (wanted == link->lag_limit_bytes)
        return;
    journal_reader_set(&link->place->reader, PLACE_FLAGS | (is_paced ? JOURNAL_READER_PACED : 0), 0);
    link->lag_limit_bytes = wanted;
    journal_reader_set_lag_limit(&link->place->reader, (uint64_t)wanted);
}

/* repl-backpressure-limit: writers wait for a replica that lags, but not for ever. */
static void look_at_lag(struct replica *link, uint64_t now_us)
{
    const uint64_t lag = lag_of(link, journal_end_offset(link->reader.journal));

    if (!loop_timer_is_running(&link->pace_timer))
        (void)pacing_look(&link->pacing, pacing_limit(), lag, now_us);
    limit_lag(link, backpressure_look(&link->backpressure, OPTION_GET(option_repl_backpressure_limit), lag, now_us,
                                      (uint64_t)OPTION_GET(option_repl_timeout) * SECOND_US));
}

static void pace(struct loop *loop, struct loop_timer *timer)
{
    struct replica *link = container_of(timer, struct replica, pace_timer);
    const uint64_t now_us = clock_monotonic_us(), lag = lag_of(link, journal_end_offset(link->reader.journal));

    (void)pacing_look(&link->pacing, pacing_limit(), lag, now_us);
    if (link->pacing.since_us != 0 && !link->pacing.is_excused)
        loop_timer_start(loop, timer, PACING_STEP_US, pace);
    look_at_lag(link, now_us);
}

/* Before it is served; `end` is where the journal ends then. */
static void watch_lag(struct replica *link, uint64_t end)
{
    const uint64_t limit = pacing_limit(), lag = link->follower.streams && link->place != NULL ? lag_of(link, end) : 0;

    if (LIKELY(lag <= limit / 2)) {
        link->pacing.is_excused = false;
        return;
    }
    if (lag > limit && limit != 0 && !link->pacing.is_excused && !loop_timer_is_running(&link->pace_timer) &&
        !conn_is_closing(&link->client->conn))
        pace(link->worker->loop, &link->pace_timer);
}

/* ----------------------------------------------------------------------------------------------------- serving -- */

static struct replica *of_follower(struct follower *follower)
{
    return container_of(follower, struct replica, follower);
}

static bool serve(struct follower *follower)
{
    struct replica *link = of_follower(follower);

    if (!replicas_is_current(link))
        return false;
    if (UNLIKELY(atomic_load_explicit(&link->sync_number, memory_order_acquire) != 0) && full_sync_serve(link))
        return true;
    return follower->streams && pump(link);
}

static bool is_behind(struct follower *follower, uint64_t end)
{
    const struct replica *link = of_follower(follower);

    return !link->is_idle && journal_reader_offset(&link->reader) < end;
}

static void look(struct follower *follower, uint64_t end)
{
    struct replica *link = of_follower(follower);

    if (UNLIKELY(!replicas_is_current(link)))
        replica_close(link, "the history of this server has changed");
    if (LIKELY(!link->worker->reentrant))
        watch_lag(link, end);
}

static const struct follower_kind replica_kind = {serve, is_behind, look};

static void on_reader_change(struct journal_reader *reader)
{
    worker_wake(container_of(reader, struct replica, reader)->worker);
}

bool replica_open_reader(struct replica *link, uint64_t offset)
{
    struct journal *journal = &link->worker->server->journal;

    assert(!link->has_reader && link->place == NULL);
    if (!journal_reader_open_at(&link->reader, journal, offset, READER_FLAGS, on_reader_change))
        return false;
    link->has_reader = true;
    link->asked_offset = offset;
    journal_reader_set(&link->reader, READER_FLAGS, link->wrap != NULL ? JOURNAL_SELECT : JOURNAL_AOF_ONLY);
    if (link->snapshot_only || link->is_old)
        return true; /* it will not return */
    link->place = replicas_take_place(link, offset);
    if (link->place == NULL) {
        struct replica_place *place = mem_alloc_zero(sizeof(*place));

        list_node_init(&place->place.node);
        if (!journal_reader_open_at(&place->reader, journal, offset, PLACE_FLAGS, NULL)) {
            mem_free(place);
            return true;
        }
        link->place = place;
    } else {
        journal_reader_move(&link->place->reader, offset);
    }
    (void)snprintf(link->place->place.ip, sizeof(link->place->place.ip), "%s",
                   link->said_ip != NULL ? link->said_ip : link->peer_ip);
    link->place->place.port = link->port;
    return true;
}

bool replica_begin_reader(struct replica *link, uint64_t offset)
{
    if (link->wrap != NULL)
        wrapping->begin(link->wrap, offset);
    return replica_open_reader(link, offset);
}

/* -------------------------------------------------------------------------------------------------- begin, end -- */

static void set_state(struct replica *link, enum replica_state state)
{
    atomic_store_explicit(&link->state, (int)state, memory_order_relaxed);
}

static void note_peer(struct replica *link)
{
    int port;

    if (!conn_peer_ip(&link->client->conn, link->peer_ip, sizeof(link->peer_ip), &port))
        (void)snprintf(link->peer_ip, sizeof(link->peer_ip), "?");
}

static void become_replica(struct replica *link)
{
    struct client *client = link->client;
    const uint64_t now_us = clock_monotonic_us();
    const int on = 0;

    assert(!follower_has_begun(&link->follower));
    note_peer(link);
    if (OPTION_IS(option_repl_disable_tcp_nodelay))
        (void)setsockopt(client->conn.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    atomic_store_explicit(&link->heard_us, now_us, memory_order_relaxed);
    link->moved_us = now_us;
    link->last_in = client->conn.bytes_in;
    link->last_out = client->conn.bytes_out;
    client->flags |= CLIENT_REPLICA;
}

static void go_online(struct replica *link, bool streams)
{
    set_state(link, REPLICA_ONLINE);
    atomic_store_explicit(&link->heard_us, clock_monotonic_us(), memory_order_relaxed);
    link->follower.streams = streams;
    replicas_tell_news();
    worker_wake(link->worker);
}

void replica_log_wish(struct client *client, const char *what_is_wrong)
{
    struct replica *link = of(client);
    char name[REPLICA_IP_MOST + 16];

    note_peer(link);
    log_notice("Replica %s asks for synchronization%s", replica_name(link, name, sizeof(name)), what_is_wrong);
}

/* Why it gets all data. */
static void log_refusal(const struct replica *link, struct slice id, int64_t offset)
{
    char name[REPLICA_IP_MOST + 16], asked[HISTORY_ID_SIZE * 2];
    struct history_facts facts;

    history_facts(&facts);
    handshake_quote(id, asked, sizeof(asked));
    (void)replica_name(link, name, sizeof(name));
    if (slice_equal_text(id, "?"))
        log_notice("Full resync requested by replica %s", name);
    else if (strcasecmp(asked, facts.id) == 0)
        log_notice("Unable to partial resync with replica %s for lack of backlog (Replica request was: %lld).", name,
                   (long long)offset + 1);
    else if (facts.second_offset >= 0 && strcasecmp(asked, facts.id2) == 0)
        log_notice(
            "Partial resynchronization not accepted: Requested offset for second ID was %lld, but I can reply up "
            "to %lld",
            (long long)offset + 1, (long long)facts.second_offset);
    else
        log_notice("Partial resynchronization not accepted: Replication ID mismatch (Replica asked for '%s', my "
                   "replication IDs are '%s' and '%s')",
                   asked, facts.id, facts.id2);
}

/* The history is this one's since its begin: offsets of such a stream say nothing of one before. */
static must_check bool find_wrapped(struct replica *link, const char *id, int64_t offset)
{
    struct history_facts facts;
    uint64_t journal_offset;

    history_facts(&facts);
    return strcasecmp(id, facts.id) == 0 && wrapping->resume(link->wrap, offset, &journal_offset) &&
           replica_open_reader(link, journal_offset);
}

static must_check bool find_stream(struct replica *link, struct slice id, int64_t offset)
{
    char text[HISTORY_ID_SIZE + 1] = {0};

    if (id.size != HISTORY_ID_SIZE || offset < 0 || !backlog_is_on())
        return false;
    memcpy(text, id.data, HISTORY_ID_SIZE);
    open_wrap(link);
    if (link->wrap != NULL)
        return find_wrapped(link, text, offset);
    return history_continues(text, offset) && replica_open_reader(link, history_to_journal(offset));
}

bool replica_continue(struct client *client, struct slice id, int64_t offset)
{
    struct replica *link = of(client);
    char name[REPLICA_IP_MOST + 16];
    struct history_facts facts;

    worker_assert_inside(client->worker);
    note_peer(link);
    if (!find_stream(link, id, offset)) {
        log_refusal(link, id, offset);
        return false;
    }
    become_replica(link);
    history_facts(&facts);
    if ((link->capa & REPLICA_CAPA_PSYNC2) != 0) {
        char line[64];
        int size = snprintf(line, sizeof(line), "+CONTINUE %s\r\n", facts.id);

        output_append(&client->conn.output, line, (size_t)size);
    } else {
        output_append(&client->conn.output, "+CONTINUE\r\n", 11);
    }
    if (link->wrap != NULL)
        offset = history_of_journal(journal_reader_offset(&link->reader));
    atomic_store_explicit(&link->acked, offset, memory_order_relaxed);
    log_notice("Partial resynchronization request from %s accepted. Sending %lld bytes of backlog starting from offset "
               "%lld.",
               replica_name(link, name, sizeof(name)), (long long)(facts.offset - offset), (long long)offset + 1);
    replicas_count_sync(REPLICAS_PARTIAL_SYNC);
    follower_begin(&link->follower);
    set_state(link, REPLICA_ONLINE);
    replicas_add(link);
    go_online(link, true);
    return true;
}

void replica_begin_full(struct client *client, bool is_old)
{
    struct replica *link = of(client);

    worker_assert_inside(client->worker);
    become_replica(link);
    open_wrap(link);
    link->is_old = is_old;
    set_state(link, REPLICA_WAITS);
    atomic_store_explicit(&link->waits_since_us, clock_monotonic_us(), memory_order_relaxed);
    follower_begin(&link->follower);
    replicas_count_sync(REPLICAS_FULL_SYNC);
    replicas_add(link);
    full_sync_wish();
}

void replica_snapshot_sent(struct replica *link, bool starts_at_once)
{
    char name[REPLICA_IP_MOST + 16];

    worker_assert_self(link->worker);
    if (link->snapshot_only) {
        log_notice("Snapshot sent to %s, which wants nothing else", replica_name(link, name, sizeof(name)));
        conn_close_after_flush(&link->client->conn);
        return;
    }
    log_notice("Synchronization with replica %s succeeded", replica_name(link, name, sizeof(name)));
    go_online(link, starts_at_once || link->is_old);
}

static void move_place(struct replica *link, uint64_t offset)
{
    if (link->place != NULL)
        journal_reader_move(&link->place->reader, offset);
}

void replica_ack(struct client *client, int64_t offset, int64_t synced_offset)
{
    struct replica *link = client->replica;
    uint64_t at, end;
    bool is_current, has_grown;

    client_assert_owned(client);
    if ((client->flags & CLIENT_REPLICA) == 0)
        return;
    if (link->wrap != NULL)
        offset = MAX(wrapping->applied(link->wrap, offset), atomic_load_explicit(&link->acked, memory_order_relaxed));
    spinlock_acquire(&replicas_lock); /* until the base has changed, if it does: replicas_disconnect */
    is_current = replicas_is_current(link);
    at = history_to_journal(offset);
    spinlock_release(&replicas_lock);
    atomic_store_explicit(&link->heard_us, clock_monotonic_us(), memory_order_relaxed);
    if (!is_current || atomic_load_explicit(&link->state, memory_order_relaxed) != REPLICA_ONLINE)
        return;
    end = journal_end_offset(&client->worker->server->journal);
    has_grown = offset > atomic_load_explicit(&link->acked, memory_order_relaxed) && at <= end;
    if (has_grown) {
        atomic_store_explicit(&link->acked, offset, memory_order_relaxed);
        move_place(link, at);
    }
    if (synced_offset > atomic_load_explicit(&link->synced, memory_order_relaxed) &&
        synced_offset <= atomic_load_explicit(&link->acked, memory_order_relaxed)) {
        atomic_store_explicit(&link->synced, synced_offset, memory_order_relaxed);
        has_grown = true;
    }
    if (!link->follower.streams && link->has_reader) {
        link->follower.streams = true;
        worker_wake(client->worker);
    }
    if (has_grown)
        replicas_tell_news();
}

static void on_client_close(struct client *client)
{
    struct replica *link = client->replica;
    char name[REPLICA_IP_MOST + 16];
    bool was_linked;

    client_assert_owned(client);
    if (LIKELY(link == NULL))
        return;
    client->replica = NULL;
    was_linked = follower_has_begun(&link->follower);
    if (was_linked) {
        log_notice("Connection with replica %s lost.", replica_name(link, name, sizeof(name)));
        follower_end(&link->follower);
    }
    if (link->place != NULL)
        link->place->place.sent = journal_reader_offset(&link->reader);
    if (link->has_reader) /* the journal is kept as long as the link is in the list */
        journal_reader_close(&link->reader);
    if (link->place != NULL && !replicas_is_current(link))
        replicas_close_place(&link->place);
    else if (link->place != NULL && link->lag_limit_bytes != 0)
        journal_reader_set_lag_limit(&link->place->reader, 0); /* nobody waits for a replica that has gone */
    if (link->wrap != NULL)
        wrapping->leave(&link->wrap);
    loop_timer_stop(client->worker->loop, &link->pace_timer);
    replicas_note_held(link, 0);
    replicas_leave_place(&link->place);
    replicas_remove(link);
    mem_free(link->said_ip);
    mem_free(link);
    if (was_linked) {
        replicas_tell_news();
        full_sync_wish(); /* perhaps nobody waits for it any more */
    }
}

/* ------------------------------------------------------------------------------------------------------- turns -- */

/* NULL: a link of another kind. */
static struct replica *replica_at(struct list_node *node)
{
    struct follower *follower = container_of(node, struct follower, node);

    return follower->kind == &replica_kind ? of_follower(follower) : NULL;
}

/* A script may wait until a replica has gone. */
static void on_inner_turn(struct worker *worker)
{
    LIST_FOREACH(node, followers_of(worker)) {
        struct replica *link = replica_at(node);

        if (link != NULL && conn_is_closing(&link->client->conn))
            replicas_remove(link);
    }
}

static void on_drained(struct client *client)
{
    struct replica *link = client->replica;

    if (link == NULL || !follower_has_begun(&link->follower))
        return;
    note_held(link);
    if (!link->is_idle)
        worker_wake(client->worker); /* served in the next turn */
}

/* Bytes that came or went are signs of life. */
static void note_life(struct replica *link, uint64_t now_us)
{
    const struct conn *conn = &link->client->conn;

    if (conn->bytes_in != link->last_in)
        atomic_store_explicit(&link->heard_us, now_us, memory_order_relaxed);
    if (conn->bytes_out != link->last_out || conn_output_size(conn) == 0)
        link->moved_us = now_us;
    link->last_in = conn->bytes_in;
    link->last_out = conn->bytes_out;
    note_held(link);
}

static void close_timed_out(struct replica *link, const char *phase)
{
    char name[REPLICA_IP_MOST + 16];

    log_warning("Disconnecting timedout replica (%s): %s", phase, replica_name(link, name, sizeof(name)));
    replica_close(link, NULL);
}

static void look_at(struct replica *link, uint64_t now_us)
{
    const uint64_t limit_us = (uint64_t)OPTION_GET(option_repl_timeout) * SECOND_US;
    struct conn *conn = &link->client->conn;

    if (conn_is_closing(conn))
        return;
    note_life(link, now_us);
    if (atomic_load_explicit(&link->state, memory_order_relaxed) == REPLICA_ONLINE) {
        if (!link->is_old && now_us - atomic_load_explicit(&link->heard_us, memory_order_relaxed) > limit_us)
            close_timed_out(link, "streaming sync");
        if (link->follower.streams && link->place != NULL)
            look_at_lag(link, now_us);
    } else if (link->has_begun) {
        if (now_us - link->moved_us > limit_us)
            close_timed_out(link, "full sync");
    } else if (conn_output_size(conn) == 0) { /* it shall not take this server for dead while it waits */
        output_append(&conn->output, "\n", 1);
        conn_write_pending(conn);
    }
}

static void on_second(struct worker *worker)
{
    const uint64_t now_us = clock_monotonic_us();

    LIST_FOREACH(node, followers_of(worker)) {
        struct replica *link = replica_at(node);

        if (link != NULL)
            look_at(link, now_us);
    }
}

const struct lifecycle replica_link_lifecycle = {
    .worker_inner_turn = on_inner_turn,
    .worker_second = on_second,
    .client_drained = on_drained,
    .client_close = on_client_close,
};
