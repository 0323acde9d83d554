#include "replication/master_link.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutex.h"
#include "base/number.h"
#include "base/panic.h"
#include "net/conn.h"
#include "net/loop.h"
#include "replication/backlog.h"
#include "replication/dial.h"
#include "replication/handshake.h"
#include "replication/failover.h"
#include "replication/history.h"
#include "replication/master.h"
#include "replication/master_client.h"
#include "replication/options.h"
#include "replication/role_rules.h"
#include "replication/replicas.h"
#include "replication/sync.h"
#include "server/core/deferred_log.h"
#include "server/core/exclusive.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/durable/aof.h"
#include "server/durable/aof_writer.h"
#include "server/durable/loading.h"
#include "server/run/follow.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { RETRY_US = 1000 * 1000, RETRY_FOREIGN_US = 10 * 1000 * 1000, REASON_BYTES = 800 };

enum link_state {
    LINK_RESTS,    /* there is no master, or the next attempt is not due */
    LINK_LOOKS_UP, /* the name is looked up */
    LINK_CONNECTS,
    LINK_SHAKES_HANDS,
    LINK_SYNCS,
    LINK_CONTINUES, /* the master continues under another id: waits for the gate */
    LINK_STREAMS
};

/* One connection: the link leaves it when it closes it, and it frees itself. */
struct peer {
    struct conn conn;
};

static struct {
    struct worker *worker; /* const after setup */
    /* worker 0's */
    uint64_t generation; /* of the master that it links to */
    enum link_state state;
    struct master_address address;
    struct dial dial;
    struct peer *peer;
    struct handshake handshake;
    struct sync *sync; /* also without a connection, while its snapshot is loaded */
    struct follow *follow;
    int64_t stream_base; /* offset of the history in which `follow` began */
    uint64_t last_io_us, last_byte_us, attempt_us;
    bool is_paused;        /* its connection */
    bool waits_for_script; /* paused since data came inside a script that runs for long (reentrant.h) */
    struct loop_timer retry;
    /* for other threads; atomic, relaxed */
    _Atomic int shown_state; /* enum master_state */
    _Atomic bool is_up, syncs, is_cut;
    _Atomic int64_t sync_total, sync_read, sync_io_us, io_us, down_us, up_us, read_offset; /* times: -1: never */
    _Atomic int64_t lost_us, away_us;             /* since when it has been lost, or -1; how long it was before that */
    _Atomic uint64_t current_tries, master_tries; /* since it was lost; since this master was chosen */
    _Atomic uint64_t input_bytes, apply_errors, connect_tries;
} master_link;

/* For threads that are not the server's: its workers may be gone. */
static struct {
    pthread_mutex_t lock;
    struct worker *worker GUARDED_BY(lock); /* NULL: nobody is to be woken */
} waker = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define SHOW(field, value) atomic_store_explicit(&master_link.field, (value), memory_order_relaxed)
#define SHOWN(field) atomic_load_explicit(&master_link.field, memory_order_relaxed)

static void go_on(void);
static void try_address(void);

static void wake(void)
{
    mutex_lock(&waker.lock);
    if (waker.worker != NULL)
        worker_wake(waker.worker);
    mutex_unlock(&waker.lock);
}

static bool is_wanted(void)
{
    return master_generation() == master_link.generation;
}

/* ------------------------------------------------------------------------------------------------ what is shown -- */

static int64_t lost_for_us(void)
{
    return SHOWN(lost_us) < 0 ? 0 : MAX((int64_t)clock_monotonic_us() - SHOWN(lost_us), 0);
}

/* It is up again, or there is no master any more. */
static void end_loss(void)
{
    SHOW(away_us, SHOWN(away_us) + lost_for_us());
    SHOW(lost_us, -1);
}

static void set_state(enum link_state state)
{
    static const enum master_state shown[] = {
        [LINK_RESTS] = MASTER_CONNECT,       [LINK_LOOKS_UP] = MASTER_CONNECTING,
        [LINK_CONNECTS] = MASTER_CONNECTING, [LINK_SHAKES_HANDS] = MASTER_HANDSHAKE,
        [LINK_SYNCS] = MASTER_SYNC,          [LINK_CONTINUES] = MASTER_HANDSHAKE,
        [LINK_STREAMS] = MASTER_CONNECTED,
    };
    const bool was_up = SHOWN(is_up), is_up = state == LINK_STREAMS;

    master_link.state = state;
    SHOW(shown_state, shown[state]);
    SHOW(syncs, state == LINK_SYNCS);
    if (!was_up && is_up) {
        SHOW(up_us, (int64_t)clock_monotonic_us());
        end_loss();
    }
    if (was_up && !is_up) {
        SHOW(down_us, (int64_t)clock_monotonic_us());
        SHOW(lost_us, SHOWN(down_us));
        SHOW(current_tries, 0);
        master_client_end();
    }
    SHOW(is_up, is_up);
    if (was_up != is_up)
        role_rules_update();
}

static void show_sync(void)
{
    SHOW(sync_total, sync_total_bytes(master_link.sync));
    SHOW(sync_read, sync_read_bytes(master_link.sync));
    SHOW(sync_io_us, (int64_t)master_link.last_byte_us);
}

static int64_t seconds_since(int64_t us)
{
    return us < 0 ? -1 : MAX((int64_t)clock_monotonic_us() - us, 0) / 1000000;
}

void master_link_facts(struct master_facts *facts)
{
    facts->state = (enum master_state)SHOWN(shown_state);
    facts->sync_in_progress = SHOWN(syncs);
    facts->sync_total_bytes = SHOWN(sync_total);
    facts->sync_read_bytes = SHOWN(sync_read);
    facts->sync_read_s = seconds_since(SHOWN(sync_io_us));
    facts->last_io_s = SHOWN(is_up) ? seconds_since(SHOWN(io_us)) : -1;
    facts->down_s = SHOWN(is_up) ? -1 : seconds_since(SHOWN(down_us));
    facts->up_s = SHOWN(is_up) ? seconds_since(SHOWN(up_us)) : -1;
    facts->away_s = (SHOWN(away_us) + lost_for_us()) / 1000000;
    facts->current_tries = SHOWN(current_tries);
    facts->master_tries = SHOWN(master_tries);
    facts->applied_offset = history_offset();
    facts->read_offset = SHOWN(is_up) ? MAX(SHOWN(read_offset), facts->applied_offset) : facts->applied_offset;
}

bool master_link_is_up(void)
{
    return SHOWN(is_up);
}

void master_link_stats(struct master_stats *stats)
{
    stats->input_bytes = SHOWN(input_bytes);
    stats->apply_errors = SHOWN(apply_errors);
    stats->connect_tries = SHOWN(connect_tries);
}

void master_link_reset_stats(void)
{
    SHOW(input_bytes, 0);
    SHOW(apply_errors, 0);
    SHOW(connect_tries, 0);
}

bool master_link_cut(void)
{
    if (!SHOWN(is_up))
        return false;
    SHOW(is_cut, true);
    master_link_look();
    return true;
}

void master_link_look(void)
{
    worker_wake(master_link.worker);
}

/* ------------------------------------------------------------------------------------------------------ its end -- */

static void leave_peer(void)
{
    struct peer *peer = master_link.peer;

    master_link.peer = NULL;
    master_link.is_paused = master_link.waits_for_script = false;
    if (peer != NULL)
        conn_close(&peer->conn);
}

static void end_attempt(void)
{
    leave_peer();
    dial_end(&master_link.dial);
    handshake_fini(&master_link.handshake);
    follow_destroy(&master_link.follow);
    exclusive_drop(master_link.worker, GATE_WISH_MASTER);
}

static void on_retry(struct loop *loop, struct loop_timer *timer)
{
    (void)loop;
    (void)timer;
    go_on();
}

static void rest(int64_t us)
{
    set_state(LINK_RESTS);
    loop_timer_start(master_link.worker->loop, &master_link.retry, us, on_retry);
}

static void retry_in(int64_t least_us)
{
    const int64_t spent_us = (int64_t)(clock_monotonic_us() - master_link.attempt_us);

    rest(MAX(least_us - spent_us, 0));
}

static void PRINTF_LIKE(2, 3) give_up(int64_t retry_us, const char *format, ...)
{
    char reason[REASON_BYTES];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    log_warning("Link to the master %s:%d: %s", master_link.address.host, master_link.address.port, reason);
    end_attempt();
    if (master_link.sync != NULL)
        sync_cut(master_link.sync);
    if (master_link.sync != NULL && sync_state(master_link.sync) != SYNC_LOADS)
        sync_release(&master_link.sync);
    retry_in(retry_us);
}

/* ------------------------------------------------------------------------------------------------------- output -- */

static void send_text(const char *text, size_t size)
{
    struct conn *conn = &master_link.peer->conn;

    output_append(&conn->output, text, size);
    conn_write_pending(conn);
}

static void send_buffer(struct buffer *out)
{
    if (out->size != 0)
        send_text(out->data, out->size);
    buffer_fini(out);
}

static int64_t applied_offset(void)
{
    return master_link.stream_base + (int64_t)follow_applied_bytes(master_link.follow);
}

static void append_number(struct buffer *buffer, int64_t number)
{
    char text[NUMBER_I64_SPACE];
    const size_t digits = number_format_i64(text, number);

    buffer_printf(buffer, "$%zu\r\n%.*s\r\n", digits, (int)digits, text);
}

/* With an append-only file it also says what is on the disk. Masters that do not know FACK read no further than ACK. */
static void send_ack(void)
{
    const bool has_file = aof_state() == AOF_ON;
    const int64_t synced = has_file ? history_of_journal(aof_synced_offset()) : 0;
    struct buffer text = {0};

    buffer_printf(&text, "*%u\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n", has_file ? 5U : 3U);
    append_number(&text, applied_offset());
    if (has_file) {
        buffer_append_text(&text, "$4\r\nFACK\r\n");
        append_number(&text, MAX(MIN(synced, applied_offset()), 0));
    }
    send_buffer(&text);
}

/* --------------------------------------------------------------------------------------------------- the stream -- */

static bool is_current(void *context)
{
    (void)context;
    return is_wanted();
}

static void on_error(struct slice name, struct slice reply, uint64_t offset, void *context)
{
    const int64_t at = master_link.stream_base + (int64_t)offset;
    char command[64], error[256];

    (void)context;
    atomic_fetch_add_explicit(&master_link.apply_errors, 1, memory_order_relaxed);
    while (reply.size != 0 && reply.data[reply.size - 1] < ' ') /* the end of the line */
        reply.size--;
    handshake_quote(name, command, sizeof(command));
    handshake_quote(reply, error, sizeof(error));
    deferred_log(
        worker_self(), LOG_LEVEL_WARNING,
        "== CRITICAL == This replica is sending an error to its master: '%s' after processing the command '%s' "
        "at offset %lld",
        error, command, (long long)at);
    /* What clients of a writable replica have changed may be in the way of what the master sends. */
    if (OPTION_GET(option_propagation_error_behavior) != PROPAGATION_IGNORE && OPTION_IS(option_replica_read_only))
        panic("The master's command '%s' failed here: '%s' (propagation-error-behavior)", command, error);
}

/* Files that are saved from here on say that their data is nobody else's: it takes a full sync to continue. */
static void on_torn(void *context)
{
    (void)context;
    history_begin();
    replicas_disconnect(false);
}

static void begin_stream(void)
{
    char address[CONN_ADDRESS_TEXT_BYTES];
    const struct follow_options options = {.db = journal_stream_db(&master_link.worker->server->journal),
                                           .address = address,
                                           .is_current = is_current,
                                           .on_error = on_error,
                                           .on_torn = on_torn};

    handshake_fini(&master_link.handshake);
    (void)conn_peer_text(&master_link.peer->conn, address);
    master_link.stream_base = history_offset();
    master_link.follow = follow_create(master_link.worker, &options);
    SHOW(read_offset, master_link.stream_base);
    master_client_begin(master_link.worker, &master_link.peer->conn);
    set_state(LINK_STREAMS);
    send_ack();
    log_notice("MASTER <-> REPLICA sync: Finished with success");
}

static void pause_input(bool is_paused)
{
    if (master_link.is_paused == is_paused)
        return;
    master_link.is_paused = is_paused;
    if (is_paused)
        conn_pause(&master_link.peer->conn);
    else
        conn_resume(&master_link.peer->conn);
}

static void settle_stream(enum follow_result result)
{
    if (UNLIKELY(master_link.waits_for_script)) { /* the script was one of the stream's */
        master_link.waits_for_script = false;
        master_link.last_io_us = clock_monotonic_us();
    }
    switch (result) {
    case FOLLOW_DONE:
    case FOLLOW_WAIT:
        break;
    case FOLLOW_BROKEN:
        give_up(RETRY_US, "the stream ends at offset %lld: %s", (long long)applied_offset(),
                follow_error(master_link.follow));
        return;
    case FOLLOW_OVER:
        worker_wake(master_link.worker); /* another master: `go_on` notices it */
        pause_input(true);
        return;
    }
    if (follow_wants_ack(master_link.follow))
        send_ack();
    pause_input(result == FOLLOW_WAIT);
}

/* ------------------------------------------------------------------------------------------------- the full sync -- */

static void begin_sync(void)
{
    const struct sync_order order = {.generation = master_link.generation,
                                     .id = master_link.handshake.id,
                                     .offset = master_link.handshake.offset,
                                     .on_change = wake};

    log_notice("Full resync from master: %s:%lld", order.id, (long long)order.offset);
    assert(master_link.sync == NULL);
    master_link.sync = sync_create(master_link.worker, &order);
    set_state(LINK_SYNCS);
    show_sync();
}

static void end_sync(void)
{
    sync_release(&master_link.sync);
    if (master_link.peer != NULL)
        begin_stream();
    else
        retry_in(0);
    pause_input(false);
}

static void settle_sync(enum sync_state state)
{
    char reason[REASON_BYTES];

    show_sync();
    switch (state) {
    case SYNC_TAKES:
        if (master_link.peer != NULL)
            pause_input(false);
        break;
    case SYNC_WAITS:
    case SYNC_LOADS:
        if (master_link.peer != NULL)
            pause_input(true);
        break;
    case SYNC_DONE:
        end_sync();
        break;
    case SYNC_FAILED:
    case SYNC_FOREIGN:
        (void)snprintf(reason, sizeof(reason), "%s", sync_error(master_link.sync));
        give_up(state == SYNC_FOREIGN ? RETRY_FOREIGN_US : RETRY_US, "%s", reason);
        break;
    }
}

/* ------------------------------------------------------------------------------------------------- the handshake -- */

/* The master continues the history that is here. Under another id all are told of it, with the gate owned. */
static void continue_history(void)
{
    if (!exclusive_begin(master_link.worker, GATE_WISH_MASTER))
        return;
    if (is_wanted()) {
        history_rename(master_link.handshake.id);
        replicas_disconnect(false);
    }
    exclusive_end(master_link.worker);
    if (!is_wanted())
        return; /* `go_on` begins anew */
    begin_stream();
    pause_input(false);
}

static void accept_continue(void)
{
    struct history_facts facts;

    history_facts(&facts);
    log_notice("Successful partial resynchronization with master.");
    if (master_link.handshake.id[0] == '\0' || strcasecmp(master_link.handshake.id, facts.id) == 0) {
        begin_stream();
        return;
    }
    log_notice("Master replication ID changed to %s", master_link.handshake.id);
    set_state(LINK_CONTINUES);
    pause_input(true);
    continue_history();
}

static size_t take_handshake(const char *data, size_t size)
{
    struct buffer out = {0};
    size_t used;
    enum handshake_result result = handshake_take(&master_link.handshake, data, size, &used, &out);
    char reason[HANDSHAKE_ERROR_BYTES];

    send_buffer(&out);
    switch (result) {
    case HANDSHAKE_MORE:
        break;
    case HANDSHAKE_CONTINUES:
        failover_was_answered(true);
        accept_continue();
        break;
    case HANDSHAKE_FULL:
        failover_was_answered(true);
        begin_sync();
        break;
    case HANDSHAKE_FRAMES: /* only a server that says its uuid is offered them, and this link says none */
        give_up(RETRY_US, "the master answers what was not asked for");
        break;
    case HANDSHAKE_FAILED:
        if (master_link.handshake.step == HANDSHAKE_PSYNC)
            failover_was_answered(false);
        (void)snprintf(reason, sizeof(reason), "%s", master_link.handshake.error);
        give_up(RETRY_US, "%s", reason);
        break;
    }
    return used;
}

/* ------------------------------------------------------------------------------------------------ the connection -- */

static size_t take_stream(char *data, size_t size)
{
    enum follow_result result;
    size_t used;

    result = follow_take(master_link.follow, data, size, &used);
    atomic_fetch_add_explicit(&master_link.read_offset, (int64_t)used, memory_order_relaxed);
    settle_stream(result);
    return used;
}

/* Takes what belongs to the present state; the state may be another afterwards. */
static size_t take_some(char *data, size_t size)
{
    size_t used = 0;
    enum sync_state state;

    switch (master_link.state) {
    case LINK_SHAKES_HANDS:
        return take_handshake(data, size);
    case LINK_SYNCS:
        state = sync_take(master_link.sync, data, size, &used);
        settle_sync(state);
        return used;
    case LINK_STREAMS:
        master_client_note(&master_link.peer->conn, follow_db(master_link.follow));
        return take_stream(data, size);
    default:
        return 0;
    }
}

/* A script has this worker in the middle of a command: what the master sends waits for its end. */
static void wait_for_script(void)
{
    if (master_link.is_paused)
        return;
    pause_input(true);
    master_link.waits_for_script = true;
    worker_wake(master_link.worker); /* `go_on` runs when the script has ended */
}

static size_t on_data(struct conn *conn, char *data, size_t size)
{
    struct peer *peer = container_of(conn, struct peer, conn);
    size_t used = 0;

    if (peer != master_link.peer)
        return size;
    master_link.last_io_us = clock_monotonic_us();
    SHOW(io_us, (int64_t)master_link.last_io_us);
    atomic_fetch_add_explicit(&master_link.input_bytes, size - MIN(size, conn_kept_size(conn)), memory_order_relaxed);
    if (master_link.state == LINK_SYNCS)
        master_link.last_byte_us = master_link.last_io_us;
    if (UNLIKELY(master_link.worker->reentrant)) {
        wait_for_script();
        return 0;
    }
    while (used < size && peer == master_link.peer && !master_link.is_paused) {
        const enum link_state state = master_link.state;
        size_t step = take_some(data + used, size - used);

        used += step;
        if (step == 0 && state == master_link.state)
            break;
    }
    return peer == master_link.peer ? used : size;
}

static void on_open(struct conn *conn)
{
    struct buffer out = {0};
    struct handshake_facts facts = {0};
    struct history_facts history;

    if (container_of(conn, struct peer, conn) != master_link.peer)
        return;
    master_link.last_io_us = clock_monotonic_us();
    log_notice("MASTER <-> REPLICA sync started");
    history_facts(&history);
    if (backlog_is_on()) {
        facts.id = history.id;
        facts.offset = history.offset;
        log_notice("Trying a partial resynchronization (request %s:%lld).", facts.id, (long long)facts.offset + 1);
    }
    facts.is_failover = facts.id != NULL && failover_asks_target();
    dial_begin_handshake(&master_link.handshake, facts, &out);
    set_state(LINK_SHAKES_HANDS);
    send_buffer(&out);
}

static void on_closed(struct conn *conn, enum conn_close_reason reason, const char *detail)
{
    struct peer *peer = container_of(conn, struct peer, conn);
    const bool is_mine = peer == master_link.peer;

    mem_free(peer);
    if (!is_mine)
        return;
    master_link.peer = NULL;
    master_link.is_paused = master_link.waits_for_script = false;
    if (master_link.state == LINK_CONNECTS && reason != CONN_CLOSED_HANDSHAKE && dial_has_more(&master_link.dial))
        try_address();
    else if (master_link.state == LINK_CONNECTS)
        give_up(RETRY_US, "can't connect: %s", detail[0] != '\0' ? detail : "the connection was closed");
    else if (master_link.state == LINK_SHAKES_HANDS)
        give_up(RETRY_US, "the connection ended before the reply to %s",
                handshake_step_name(master_link.handshake.step));
    else
        give_up(RETRY_US, "Connection with master lost%s%s", detail[0] != '\0' ? ": " : "", detail);
}

static const struct conn_handler handler = {.on_data = on_data, .on_open = on_open, .on_closed = on_closed};

/* Behind the lookup, and again if an address has failed. */
static void try_address(void)
{
    struct peer *peer = mem_alloc_zero(sizeof(*peer));
    char error[DIAL_ERROR_BYTES];

    assert(master_link.peer == NULL);
    switch (dial_next(&master_link.dial, master_link.worker->loop, &peer->conn, &handler, error)) {
    case DIAL_WAITS:
        mem_free(peer);
        break;
    case DIAL_CONNECTS:
        master_link.peer = peer;
        master_link.last_io_us = clock_monotonic_us();
        set_state(LINK_CONNECTS);
        break;
    case DIAL_FAILED:
        mem_free(peer);
        give_up(RETRY_US, "%s", error);
        break;
    }
}

static void begin_attempt(void)
{
    loop_timer_stop(master_link.worker->loop, &master_link.retry);
    master_link.attempt_us = master_link.last_io_us = clock_monotonic_us();
    atomic_fetch_add_explicit(&master_link.connect_tries, 1, memory_order_relaxed);
    SHOW(current_tries, SHOWN(current_tries) + 1);
    SHOW(master_tries, SHOWN(master_tries) + 1);
    log_notice("Connecting to MASTER %s:%d", master_link.address.host, master_link.address.port);
    set_state(LINK_LOOKS_UP);
    dial_begin(&master_link.dial, master_link.address.host, master_link.address.port, wake);
    try_address();
}

/* ---------------------------------------------------------------------------------------------------- turning -- */

/* Another master, or none. */
static void begin_anew(void)
{
    end_attempt();
    sync_release(&master_link.sync);
    loop_timer_stop(master_link.worker->loop, &master_link.retry);
    set_state(LINK_RESTS);
    SHOW(down_us, -1);
    SHOW(sync_io_us, -1);
    SHOW(current_tries, 0);
    SHOW(master_tries, 0);
    master_link.generation = master_address(&master_link.address);
    if (master_link.address.host[0] == '\0')
        end_loss();
}

static bool may_attempt(void)
{
    return master_link.address.host[0] != '\0' && master_link.sync == NULL && !loading_runs() && !loading_replaces() &&
           !loop_timer_is_running(&master_link.retry) && !server_is_stopping(master_link.worker->server);
}

static void go_on(void)
{
    assert(!master_link.worker->reentrant);
    if (!is_wanted())
        begin_anew();
    if (UNLIKELY(master_link.waits_for_script)) {
        master_link.waits_for_script = false;
        master_link.last_io_us = clock_monotonic_us();
        pause_input(false);
    }
    if (UNLIKELY(SHOWN(is_cut))) {
        SHOW(is_cut, false);
        if (master_link.state == LINK_STREAMS)
            give_up(0, "a client has killed it");
    }
    if (master_link.sync != NULL)
        settle_sync(sync_go_on(master_link.sync));
    switch (master_link.state) {
    case LINK_RESTS:
        if (may_attempt())
            begin_attempt();
        break;
    case LINK_LOOKS_UP:
        try_address();
        break;
    case LINK_CONTINUES:
        continue_history();
        break;
    case LINK_STREAMS:
        if (follow_waits(master_link.follow))
            settle_stream(follow_go_on(master_link.follow));
        break;
    default:
        break;
    }
}

static bool is_silent(void)
{
    const uint64_t limit_us = (uint64_t)OPTION_GET(option_repl_timeout) * 1000 * 1000;

    if (master_link.state == LINK_RESTS || master_link.is_paused)
        return false; /* it is this server that lets the master wait */
    return clock_monotonic_us() - master_link.last_io_us > limit_us;
}

static const char *phase_of_silence(void)
{
    switch (master_link.state) {
    case LINK_SYNCS:
        return "Timeout receiving bulk data from MASTER";
    case LINK_STREAMS:
        return "MASTER timeout";
    default:
        return "Timeout connecting to the MASTER";
    }
}

static void on_second(struct worker *worker)
{
    if (worker->index != 0)
        return;
    go_on();
    if (master_link.is_paused)
        master_link.last_io_us = clock_monotonic_us();
    if (is_silent()) {
        give_up(RETRY_US, "%s: nothing was received for %lld seconds (repl-timeout)", phase_of_silence(),
                (long long)OPTION_GET(option_repl_timeout));
        return;
    }
    if (master_link.state == LINK_STREAMS)
        send_ack();
    else if (master_link.state == LINK_SYNCS && master_link.peer != NULL)
        send_text("\n", 1);
}

/* A script that runs for long, perhaps of the stream itself: then its connection is in the middle of on_data. */
static void on_inner_begin(struct worker *worker)
{
    if (worker->index == 0 && master_link.state == LINK_STREAMS && master_link.peer != NULL)
        wait_for_script();
}

static void on_wake(struct worker *worker)
{
    if (worker->index == 0)
        go_on();
}

static void on_start(struct worker *worker)
{
    if (worker->index != 0)
        return;
    mutex_lock(&waker.lock);
    waker.worker = worker;
    mutex_unlock(&waker.lock);
    go_on();
}

static void on_stop(struct worker *worker)
{
    if (worker->index != 0)
        return;
    mutex_lock(&waker.lock);
    waker.worker = NULL;
    mutex_unlock(&waker.lock);
    end_attempt();
    sync_release(&master_link.sync);
    loop_timer_stop(worker->loop, &master_link.retry);
    set_state(LINK_RESTS);
}

static void on_end(struct server *server)
{
    (void)server;
    sync_free_left();
}

static bool on_server_start(struct server *server)
{
    thread_assert_main();
    master_link.worker = &server->workers[0];
    return true;
}

void master_link_setup(void)
{
    thread_assert_main();
    master_client_setup();
    SHOW(down_us, -1);
    SHOW(lost_us, -1);
    SHOW(sync_io_us, -1);
    SHOW(io_us, -1);
    SHOW(sync_total, -1);
}

const struct lifecycle master_link_lifecycle = {
    .server_start = on_server_start,
    .worker_start = on_start,
    .worker_wake = on_wake,
    .worker_inner_begin = on_inner_begin,
    .worker_second = on_second,
    .worker_stop = on_stop,
    .server_end = on_end,
};
