#include "server/core/client.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/tls.h"
#include "server/config/options.h"
#include "server/core/admission.h"
#include "server/core/client_ref.h"
#include "server/core/deliveries.h"
#include "server/core/lifecycle.h"
#include "server/core/role.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/core/transaction.h"
#include "store/watch.h"

#include <string.h>
#include <unistd.h>

_Atomic bool client_sizes_matter; /* global: see client.h */

enum { REPLICA_LEAST_LIMIT_BYTES = 1024 * 1024 };

static const struct client_input *client_input; /* const while there are clients */

void client_assert_owned(const struct client *client)
{
    worker_assert_self(client->worker);
}

void client_set_input(const struct client_input *input)
{
    thread_assert_main();
    client_input = input;
}

static struct client *client_of(struct conn *conn)
{
    return container_of(conn, struct client, conn);
}

/* So much input is kept, of a command that is not complete. Large arguments have been counted one by one. */
static void check_query(struct client *client, size_t kept_bytes)
{
    if (kept_bytes + resp_parser_table_bytes(&client->parser) > OPTION_GET_U64(option_client_query_buffer_limit) &&
        !conn_is_closing(&client->conn))
        client_close_for_query(client);
}

static size_t on_data(struct conn *conn, char *data, size_t size)
{
    struct client *client = client_of(conn);
    size_t done = LIKELY(client->on_input == NULL) ? client_input->on_data(client, data, size)
                                                   : client->on_input(client, data, size);

    client_assert_owned(client);
    if (UNLIKELY(done != size || !resp_parser_is_idle(&client->parser)))
        check_query(client, size - done);
    return done;
}

static void on_kept(struct conn *conn)
{
    struct client *client = client_of(conn);

    client_show_query(client);
    client_note_size(client);
}

static void on_direct_done(struct conn *conn)
{
    client_input->on_direct_done(client_of(conn));
}

/* Ends the client's wait, subscriptions and watches. When the connection is closed it is called again and has nothing
 * left to do. A parked command stays until then, since the list of parked commands may be in use; it is not run. */
static void withdraw(struct client *client)
{
    client_reset_transaction(client);
    deliveries_leave(client);
    lifecycle_client_withdraw(client);
}

/* It goes at the turn's end; until then nobody is shown it. */
static void client_hide(struct client *client)
{
    atomic_fetch_or_explicit(&client->card.requests, CLIENT_REQUEST_KILL, memory_order_release);
}

void client_kill(struct client *client)
{
    const struct request *running = client->worker->run.running;

    client_assert_owned(client);
    client_hide(client);
    conn_close(&client->conn);
    lifecycle_client_kill(client);
    if (running == NULL || running->client != client)
        withdraw(client);
}

static void client_destroy(struct client *client)
{
    struct worker *worker = client->worker;

    client_assert_owned(client);
    withdraw(client);
    list_remove(&client->node);
    spinlock_acquire(&worker->roster_lock);
    list_remove(&client->card.node);
    spinlock_release(&worker->roster_lock);
    lifecycle_client_close(client);
    client_ref_leave(client);
    mem_free(client->card.address);
    mem_free(client->card.name);
    mem_free(client->card.library_name);
    mem_free(client->card.library_version);
    resp_parser_fini(&client->parser);
    atomic_fetch_sub_explicit(&worker->server->client_count, 1, memory_order_relaxed);
    counter_add(&worker->stats.client_count, UINT64_MAX); /* minus one */
    mem_free(client);
}

static void log_closed(const struct client *client)
{
    struct buffer line = {0};

    client_card_print(&client->card, &line);
    log_verbose("Client closed connection %s", buffer_text(&line));
    buffer_fini(&line);
}

static void on_closed(struct conn *conn, enum conn_close_reason reason, const char *detail)
{
    struct client *client = client_of(conn);

    if (reason == CONN_CLOSED_HANDSHAKE)
        log_verbose("Error accepting a client connection: %s addr=%s", detail, client->card.address);
    else if (reason == CONN_CLOSED_ERROR)
        log_verbose("Reading from client: %s id=%llu addr=%s", detail, (unsigned long long)client->id,
                    client->card.address);
    else if (reason == CONN_CLOSED_PEER && log_wants(LOG_LEVEL_VERBOSE))
        log_closed(client);
    client_destroy(client);
}

/* Only for TLS connections: work that waits for the end of the handshake, for the certificate or for readable input. */
static void on_open(struct conn *conn)
{
    if (!lifecycle_client_admit(client_of(conn)))
        conn_close_after_flush(conn);
}

/* The card's figures about output are out of date. */
static void on_drained(struct conn *conn)
{
    struct client *client = client_of(conn);

    client_show_output(client);
    client_note_size(client);
    if ((client->flags & CLIENT_REPLICA) != 0)
        lifecycle_client_drained(client);
}

static const struct conn_handler client_handler = {
    .on_open = on_open,
    .on_data = on_data,
    .on_kept = on_kept,
    .on_direct_done = on_direct_done,
    .on_drained = on_drained,
    .on_closed = on_closed,
};

struct client *client_of_conn(struct conn *conn)
{
    return conn->handler == &client_handler ? client_of(conn) : NULL;
}

static char *address_texts(const struct conn *conn, char **local)
{
    char peer[CONN_ADDRESS_TEXT_BYTES], own[CONN_ADDRESS_TEXT_BYTES], *both;
    size_t peer_size = conn_peer_text(conn, peer), own_size = conn_local_text(conn, own);

    both = mem_alloc(peer_size + own_size + 2);
    memcpy(both, peer, peer_size + 1);
    *local = both + peer_size + 1;
    memcpy(*local, own, own_size + 1);
    return both;
}

static void card_init(struct client *client, int64_t now_ms)
{
    struct client_card *card = &client->card;

    card->worker = client->worker;
    card->id = client->id;
    card->created_us = (int64_t)clock_monotonic_us();
    card->fd = client->conn.fd;
    card->address = address_texts(&client->conn, &card->local_address);
    atomic_init(&card->command_id, UINT32_MAX);
    atomic_init(&card->queued_count, -1);
    atomic_init(&card->redirect, -1);
    atomic_init(&card->active_ms, now_ms);
    atomic_init(&card->proto, 2);
    client_update_card(client);
}

bool client_open(struct worker *worker, int fd, enum listener_kind kind, struct tls_context *tls)
{
    struct server *server = worker->server;
    struct client *client = mem_alloc_zero(sizeof(*client));
    bool open = (kind != LISTENER_TLS || tls != NULL) &&
                conn_open(worker->loop, &client->conn, fd, &client_handler, tls);

    worker_assert_self(worker);
    if (!open) {
        atomic_fetch_sub_explicit(&server->client_count, 1, memory_order_relaxed);
        mem_free(client);
        close(fd);
        return false;
    }
    client->worker = worker;
    client->id = atomic_fetch_add_explicit(&server->next_client_id, 1, memory_order_relaxed) + 1;
    client->proto = 2;
    client->flags = (kind == LISTENER_TLS ? CLIENT_TLS : 0U) | (kind == LISTENER_UNIX ? CLIENT_UNIX : 0U);
    resp_parser_init(&client->parser, &worker->limits_unauthenticated, &worker->run.scratch);
    lifecycle_client_open(client);
    if (kind != LISTENER_UNIX && OPTION_GET(option_tcp_keepalive) != 0 &&
        !conn_set_keepalive(&client->conn, (int)OPTION_GET(option_tcp_keepalive)))
        log_debug("Can't enable keepalive for client id=%llu", (unsigned long long)client->id);
    card_init(client, worker_now_ms(worker));
    list_push_back(&worker->clients, &client->node);
    spinlock_acquire(&worker->roster_lock);
    list_push_back(&worker->roster, &client->card.node);
    spinlock_release(&worker->roster_lock);
    log_verbose(kind == LISTENER_UNIX ? "Accepted connection to %s" : "Accepted %s", client->card.address);
    counter_add(&worker->stats.connections_received, 1);
    counter_add(&worker->stats.client_count, 1);
    return true;
}

void client_set_authenticated(struct client *client, bool authenticated)
{
    client_assert_owned(client);
    client->flags = authenticated ? client->flags | CLIENT_AUTHENTICATED
                                  : client->flags & ~(uint32_t)CLIENT_AUTHENTICATED;
    client->parser.limits = authenticated ? &client->worker->limits : &client->worker->limits_unauthenticated;
}

bool client_end_wait(struct client *client, uint64_t wait_count)
{
    client_assert_owned(client);
    if ((client->flags & CLIENT_BLOCKED) == 0 || client->wait_count != wait_count)
        return false;
    return client->on_unblock == NULL || client_card_claim(&client->card, CLIENT_WAIT_NONE);
}

bool client_is_for_master(const struct client *client, uint32_t command_flags)
{
    const uint32_t kinds = (client->flags & CLIENT_READONLY) != 0 ? COMMAND_WRITE : COMMAND_WRITE | COMMAND_READONLY;

    client_assert_owned(client);
    return (client->flags & CLIENT_CAPA_REDIRECT) != 0 && role_follows() && (command_flags & kinds) != 0;
}

/* It waited here for what only a master can give. */
static void end_for_role(struct client *client)
{
    const uint32_t command_id = atomic_load_explicit(&client->card.command_id, memory_order_relaxed);
    char error[ROLE_REDIRECT_SPACE];

    if (client_is_for_master(client, command_at(command_id)->flags) && role_redirect(error)) {
        client->on_unblock(client, error);
        return;
    }
    client->on_unblock(client, role_unblock_error);
    conn_close_after_flush(&client->conn);
}

void client_serve_unblock(struct client *client)
{
    uint32_t how = atomic_load(&client->card.wait);

    client_assert_owned(client);
    if (how != CLIENT_WAIT_TIMEOUT && how != CLIENT_WAIT_ERROR && how != CLIENT_WAIT_DEMOTED)
        return;
    atomic_store(&client->card.wait, CLIENT_WAIT_NONE);
    if (how == CLIENT_WAIT_TIMEOUT) {
        client->on_unblock(client, NULL);
    } else if (how == CLIENT_WAIT_ERROR) {
        client->on_unblock(client, "UNBLOCKED client unblocked via CLIENT UNBLOCK");
    } else {
        end_for_role(client);
    }
}

void client_block(struct client *client, void (*on_unblock)(struct client *client, const char *error))
{
    client_assert_owned(client);
    assert((client->flags & CLIENT_BLOCKED) == 0);
    client->flags |= CLIENT_BLOCKED;
    client->wait_count++;
    client->on_unblock = on_unblock;
    atomic_store(&client->card.wait, on_unblock != NULL ? CLIENT_WAIT_ON : CLIENT_WAIT_NONE);
    if (on_unblock != NULL)
        conn_pause_blocked(&client->conn);
    else
        conn_pause(&client->conn); /* it ends by itself: a peer that only ended its side gets the reply */
}

void client_unblock(struct client *client)
{
    client_assert_owned(client);
    assert((client->flags & CLIENT_BLOCKED) != 0);
    assert(atomic_load(&client->card.wait) == CLIENT_WAIT_NONE);
    client->flags &= ~(uint32_t)CLIENT_BLOCKED;
    client_update_card(client);
    conn_write_pending(&client->conn);
    conn_resume(&client->conn);
}

void client_unwatch(struct client *client)
{
    client_assert_owned(client);
    if (client->watches == NULL)
        return;
    /* Stripes may be held just now: the worker unlinks it when none is. */
    list_push_back(&client->worker->leaving_watches, &client->watches->node);
    client->watches = NULL;
    client->watched_count = 0;
}

void client_reset_transaction(struct client *client)
{
    client_assert_owned(client);
    transaction_destroy(&client->transaction);
    client_unwatch(client);
}

void client_set_name(struct client *client, char **field, struct slice text)
{
    char *fresh = NULL, *old;

    client_assert_owned(client);
    if (text.size != 0) {
        fresh = mem_alloc(text.size + 1);
        memcpy(fresh, text.data, text.size);
        fresh[text.size] = '\0';
    }
    spinlock_acquire(&client->worker->roster_lock);
    old = *field;
    *field = fresh;
    spinlock_release(&client->worker->roster_lock);
    mem_free(old);
}

static inline void show32(_Atomic uint32_t *field, uint32_t value)
{
    if (atomic_load_explicit(field, memory_order_relaxed) != value)
        atomic_store_explicit(field, value, memory_order_relaxed);
}

static inline void show64(_Atomic uint64_t *field, uint64_t value)
{
    if (atomic_load_explicit(field, memory_order_relaxed) != value)
        atomic_store_explicit(field, value, memory_order_relaxed);
}

/* A buffer's size, which also counts for the largest of the current second. */
static inline void show_buffer(_Atomic uint64_t *field, uint64_t value, _Atomic uint64_t *largest)
{
    if (LIKELY(atomic_load_explicit(field, memory_order_relaxed) == value))
        return;
    atomic_store_explicit(field, value, memory_order_relaxed);
    if (value > atomic_load_explicit(largest, memory_order_relaxed))
        atomic_store_explicit(largest, value, memory_order_relaxed);
}

/* Bytes of a large argument that are here. */
static size_t large_received(const struct client *client)
{
    return client->large != NULL ? client->large_received - client->conn.direct_size : 0;
}

void client_show_query(struct client *client)
{
    struct client_card *card = &client->card;
    struct worker_stats *stats = &client->worker->stats;
    size_t kept = conn_kept_size(&client->conn), read = MIN(resp_parser_read_size(&client->parser), kept);

    client_assert_owned(client);
    show64(&card->query_bytes, kept - read + large_received(client) + resp_parser_large_size(&client->parser));
    show64(&card->read_bytes, read);
    show_buffer(&card->query_capacity,
                conn_kept_capacity(&client->conn) + client->large_bytes + resp_parser_large_bytes(&client->parser),
                &stats->recent_input[stats->recent_index]);
    show64(&card->unfinished_bytes, resp_parser_table_bytes(&client->parser));
}

void client_show_output(struct client *client)
{
    struct client_card *card = &client->card;
    struct worker_stats *stats = &client->worker->stats;
    uint64_t bytes = conn_output_size(&client->conn);

    client_assert_owned(client);
    show_buffer(&card->output_bytes, bytes, &stats->recent_output[stats->recent_index]);
    show64(&card->output_pieces, output_more_count(&client->conn.output));
    atomic_store_explicit(&card->bytes_out, client->conn.bytes_out, memory_order_relaxed);
    if (bytes != 0)
        conn_want_drained(&client->conn);
}

void client_show_running(struct client *client, const struct command *command, size_t query_bytes, size_t args_bytes)
{
    client_assert_owned(client);
    atomic_store_explicit(&client->card.command_id, command->id, memory_order_relaxed);
    atomic_store_explicit(&client->card.query_bytes, query_bytes, memory_order_relaxed);
    atomic_store_explicit(&client->card.args_bytes, args_bytes, memory_order_relaxed);
}

/* Inside on_data kept input may be consumed already: its size is known only afterwards, in on_kept. */
static bool query_is_known(const struct client *client)
{
    return LIKELY((client->conn.flags & CONN_IN_DATA) == 0 || conn_kept_capacity(&client->conn) == 0);
}

static void show_query_if_any(struct client *client)
{
    const struct client_card *card = &client->card;

    if (UNLIKELY(conn_kept_capacity(&client->conn) != 0 || client->large_bytes != 0 ||
                 !resp_parser_is_idle(&client->parser) ||
                 atomic_load_explicit(&card->query_capacity, memory_order_relaxed) != 0 ||
                 atomic_load_explicit(&card->unfinished_bytes, memory_order_relaxed) != 0))
        client_show_query(client); /* requests usually come whole, and nothing is kept */
}

void client_update_card(struct client *client)
{
    struct client_card *card = &client->card;
    int32_t queued = client->transaction != NULL ? (int32_t)transaction_count(client->transaction) : -1;

    atomic_store_explicit(&card->active_ms, client->worker->now_ms, memory_order_relaxed);
    show32(&card->flags, client->flags);
    show32(&card->db, client->db);
    show32(&card->proto, client->proto);
    show32(&card->watched_count, client->watched_count);
    if (UNLIKELY(queued >= 0 || atomic_load_explicit(&card->queued_count, memory_order_relaxed) != queued)) {
        atomic_store_explicit(&card->queued_count, queued, memory_order_relaxed);
        show64(&card->multi_bytes, queued > 0 ? transaction_memory_bytes(client->transaction) : 0);
    }
    if (query_is_known(client))
        show_query_if_any(client);
    atomic_store_explicit(&card->bytes_in, client->conn.bytes_in, memory_order_relaxed);
    atomic_store_explicit(&card->reads, client->conn.reads, memory_order_relaxed);
    atomic_store_explicit(&card->bytes_out, client->conn.bytes_out, memory_order_relaxed);
    /* Little output is sent in a moment: the card shows only output that has to wait or is large, and later that it was
     * sent. */
    if (UNLIKELY((client->conn.flags & CONN_BLOCKED_OUT) != 0 ||
                 output_size(&client->conn.output) >= OUTPUT_BLOCK_BYTES))
        client_show_output(client);
    if (UNLIKELY(atomic_load_explicit(&client_sizes_matter, memory_order_relaxed)) && query_is_known(client))
        client_tell_size(client);
}

COLD void client_tell_size(struct client *client)
{
    client_assert_owned(client);
    lifecycle_client_sized(client);
}

void client_close_for_query(struct client *client)
{
    client_assert_owned(client);
    log_warning("Closing client that reached max query buffer length: id=%llu addr=%s", (unsigned long long)client->id,
                client->card.address);
    counter_add(&client->worker->stats.query_buffer_limit_disconnections, 1);
    conn_close(&client->conn);
}

static void close_for_output(struct client *client, const char *which)
{
    log_warning("Client id=%llu addr=%s closed for overcoming of output buffer limits (%s).",
                (unsigned long long)client->id, client->card.address, which);
    counter_add(&client->worker->stats.output_buffer_limit_disconnections, 1);
    client_hide(client);
    conn_close(&client->conn);
}

void client_cut(struct client *client)
{
    client_assert_owned(client);
    if (!conn_is_closing(&client->conn))
        close_for_output(client, "hard");
}

/* Apart from its caller, which usually has nothing to do and needs no stack for that. */
static NOINLINE void check_output(struct client *client, const struct output_limit *limit, uint64_t hard, uint64_t soft)
{
    /* What a replica's output references is the journal's. */
    uint64_t size = (client->flags & CLIENT_REPLICA) != 0 ? output_memory_bytes(&client->conn.output)
                                                          : conn_output_size(&client->conn);
    int64_t now_ms = worker_now_ms(client->worker);

    client_assert_owned(client);
    if ((client->flags & CLIENT_REPLICA) != 0 && size < REPLICA_LEAST_LIMIT_BYTES)
        hard = soft = 0; /* that much is written ahead for every replica */
    if (hard != 0 && size >= hard) {
        close_for_output(client, "hard");
        return;
    }
    if (soft == 0 || size < soft) {
        client->output_soft_since_ms = 0;
    } else if (client->output_soft_since_ms == 0) {
        client->output_soft_since_ms = now_ms;
    } else if (now_ms - client->output_soft_since_ms >
               (int64_t)atomic_load_explicit(&limit->soft_seconds, memory_order_relaxed) * 1000) {
        close_for_output(client, "soft");
    }
}

static const struct output_limit *output_limit_of(const struct client *client)
{
    if ((client->flags & CLIENT_REPLICA) != 0)
        return &option_output_limits[OUTPUT_CLASS_REPLICA];
    return &option_output_limits[(client->flags & CLIENT_PUBSUB) != 0 ? OUTPUT_CLASS_PUBSUB : OUTPUT_CLASS_NORMAL];
}

void client_check_output(struct client *client)
{
    const struct output_limit *limit = output_limit_of(client);
    uint64_t hard = atomic_load_explicit(&limit->hard_bytes, memory_order_relaxed);
    uint64_t soft = atomic_load_explicit(&limit->soft_bytes, memory_order_relaxed);

    if (UNLIKELY(hard != 0 || soft != 0))
        check_output(client, limit, hard, soft);
}

uint64_t client_output_limit_bytes(const struct client *client)
{
    client_assert_owned(client);
    uint64_t hard = atomic_load_explicit(&output_limit_of(client)->hard_bytes, memory_order_relaxed);

    return hard != 0 ? hard : UINT64_MAX;
}

void client_check_stranger(struct client *client)
{
    client_assert_owned(client);
    if (!client_is_authenticated(client) && conn_output_size(&client->conn) >= STRANGER_OUTPUT_BYTES &&
        !conn_is_closing(&client->conn))
        close_for_output(client, "not authenticated");
}

void client_sent_unasked(struct client *client)
{
    client_assert_owned(client);
    conn_write_pending(&client->conn);
    client_check_output(client);
    if ((client->conn.flags & CONN_BLOCKED_OUT) != 0 || output_size(&client->conn.output) >= OUTPUT_BLOCK_BYTES) {
        client_show_output(client);
        client_note_size(client);
    }
}

void client_close_all(struct worker *worker)
{
    worker_assert_self(worker);
    LIST_FOREACH(node, &worker->clients)
        conn_close(&container_of(node, struct client, node)->conn);
}

void client_card_flags(const struct client_card *card, char letters[sizeof(CLIENT_FLAG_LETTERS)])
{
    static const struct {
        uint32_t flags;
        char letter;
    } rows[] = {
        {CLIENT_MONITOR, 'O'},
        {CLIENT_REPLICA, 'S'},
        {CLIENT_MASTER | CLIENT_AS_MASTER, 'M'},
        {CLIENT_PUBSUB, 'P'},
        {0, 'x'},
        {CLIENT_BLOCKED | CLIENT_PAUSED, 'b'},
        {CLIENT_TRACKING, 't'},
        {CLIENT_TRACKING_BROKEN, 'R'},
        {CLIENT_TRACKING_BCAST, 'B'},
        {CLIENT_UNIX, 'U'},
        {CLIENT_READONLY, 'r'},
        {CLIENT_NO_EVICT, 'e'},
        {CLIENT_NO_TOUCH, 'T'},
        {CLIENT_IMPORT_SOURCE, 'I'},
    };
    const bool is_queueing = atomic_load_explicit(&card->queued_count, memory_order_relaxed) >= 0;
    const uint32_t flags = atomic_load_explicit(&card->flags, memory_order_relaxed);
    unsigned count = 0;

    for (size_t i = 0; i < countof(rows); i++) {
        if (rows[i].flags != 0 ? (flags & rows[i].flags) != 0 : is_queueing)
            letters[count++] = rows[i].letter;
    }
    if (count == 0)
        letters[count++] = 'N';
    letters[count] = '\0';
}

void client_card_capa(const struct client_card *card, char letters[sizeof(CLIENT_CAPA_LETTERS)])
{
    const uint32_t flags = atomic_load_explicit(&card->flags, memory_order_relaxed);

    strcpy(letters, (flags & CLIENT_CAPA_REDIRECT) != 0 ? "r" : "");
}

uint64_t client_card_memory_bytes(const struct client_card *card)
{
    return sizeof(struct client) + atomic_load_explicit(&card->query_capacity, memory_order_relaxed) +
           atomic_load_explicit(&card->unfinished_bytes, memory_order_relaxed) +
           atomic_load_explicit(&card->output_bytes, memory_order_relaxed) +
           atomic_load_explicit(&card->multi_bytes, memory_order_relaxed) +
           atomic_load_explicit(&card->pubsub_bytes, memory_order_relaxed) +
           atomic_load_explicit(&card->prefix_bytes, memory_order_relaxed) +
           watch_memory_bytes(atomic_load_explicit(&card->watched_count, memory_order_relaxed));
}

bool client_card_claim(struct client_card *card, enum client_wait how)
{
    uint32_t expected = CLIENT_WAIT_ON;

    return atomic_compare_exchange_strong(&card->wait, &expected, (uint32_t)how);
}

void client_card_print(const struct client_card *card, struct buffer *buffer)
{
    int64_t now_ms = clock_wall_ms();
    uint32_t command_id = atomic_load_explicit(&card->command_id, memory_order_relaxed);
    uint64_t query_bytes = atomic_load_explicit(&card->query_bytes, memory_order_relaxed);
    uint64_t query_capacity = atomic_load_explicit(&card->query_capacity, memory_order_relaxed);
    uint64_t read_bytes = atomic_load_explicit(&card->read_bytes, memory_order_relaxed);
    uint64_t output_bytes = atomic_load_explicit(&card->output_bytes, memory_order_relaxed);
    char letters[sizeof(CLIENT_FLAG_LETTERS)], capa[sizeof(CLIENT_CAPA_LETTERS)];

    assert(card->worker == NULL || spinlock_is_mine(&card->worker->roster_lock) || worker_is_mine(card->worker));
    buffer_printf(buffer,
                  "id=%llu addr=%s laddr=%s fd=%d name=%s age=%lld idle=%lld flags=", (unsigned long long)card->id,
                  card->address, card->local_address, card->fd, card->name != NULL ? card->name : "",
                  (long long)(((int64_t)clock_monotonic_us() - card->created_us) / (1000 * 1000)),
                  (long long)(MAX(now_ms - atomic_load_explicit(&card->active_ms, memory_order_relaxed), 0) / 1000));
    client_card_flags(card, letters);
    buffer_append_text(buffer, letters);
    buffer_printf(
        buffer,
        " db=%u sub=%u psub=%u ssub=%u multi=%d watch=%u qbuf=%llu qbuf-free=%llu argv-mem=%llu multi-mem=%llu"
        " rbs=0 rbp=0 obl=%llu oll=%llu omem=%llu tot-mem=%llu events=%s cmd=",
        atomic_load_explicit(&card->db, memory_order_relaxed),
        atomic_load_explicit(&card->subscription_counts[TOPIC_CHANNEL], memory_order_relaxed),
        atomic_load_explicit(&card->subscription_counts[TOPIC_PATTERN], memory_order_relaxed),
        atomic_load_explicit(&card->subscription_counts[TOPIC_SHARD], memory_order_relaxed),
        atomic_load_explicit(&card->queued_count, memory_order_relaxed),
        atomic_load_explicit(&card->watched_count, memory_order_relaxed), (unsigned long long)query_bytes,
        (unsigned long long)(query_capacity - MIN(query_bytes + read_bytes, query_capacity)),
        (unsigned long long)(read_bytes + atomic_load_explicit(&card->args_bytes, memory_order_relaxed) +
                             atomic_load_explicit(&card->unfinished_bytes, memory_order_relaxed)),
        (unsigned long long)atomic_load_explicit(&card->multi_bytes, memory_order_relaxed),
        (unsigned long long)output_bytes,
        (unsigned long long)atomic_load_explicit(&card->output_pieces, memory_order_relaxed),
        (unsigned long long)output_bytes, (unsigned long long)client_card_memory_bytes(card),
        output_bytes != 0 ? "rw" : "r");
    if (command_id == UINT32_MAX)
        buffer_append_text(buffer, "NULL");
    else
        buffer_append_slice(buffer, command_at(command_id)->full_name);
    client_card_capa(card, capa);
    buffer_printf(buffer,
                  " user=%s redir=%lld resp=%u lib-name=%s lib-ver=%s io-thread=%u tot-net-in=%llu tot-net-out=%llu "
                  "tot-cmds=%llu read-events=%llu parse-batch-cmd-sum=%llu parse-batch-cnt=%llu capa=%s",
                  card->user_name, (long long)atomic_load_explicit(&card->redirect, memory_order_relaxed),
                  atomic_load_explicit(&card->proto, memory_order_relaxed),
                  card->library_name != NULL ? card->library_name : "",
                  card->library_version != NULL ? card->library_version : "",
                  card->worker != NULL ? card->worker->index : 0,
                  (unsigned long long)atomic_load_explicit(&card->bytes_in, memory_order_relaxed),
                  (unsigned long long)atomic_load_explicit(&card->bytes_out, memory_order_relaxed),
                  (unsigned long long)atomic_load_explicit(&card->command_count, memory_order_relaxed),
                  (unsigned long long)atomic_load_explicit(&card->reads, memory_order_relaxed),
                  (unsigned long long)atomic_load_explicit(&card->grouped_count, memory_order_relaxed),
                  (unsigned long long)atomic_load_explicit(&card->group_count, memory_order_relaxed), capa);
}
