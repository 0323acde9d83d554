#include "active/links.h"

#include "active/foreign.h"
#include "active/keydb_stream.h"
#include "active/node.h"
#include "active/room.h"
#include "active/peers.h"
#include "active/receiver.h"
#include "active/uuid.h"
#include "active/wrapping.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutex.h"
#include "base/spinlock.h"
#include "net/conn.h"
#include "net/loop.h"
#include "replication/dial.h"
#include "replication/handshake.h"
#include "replication/options.h"
#include "server/config/options.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/loading.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { RETRY_US = 1000 * 1000, RETRY_REFUSED_US = 10 * 1000 * 1000, REASON_BYTES = 480, NAME_BYTES = 280 };

enum link_state { LINK_RESTS, LINK_LOOKS_UP, LINK_CONNECTS, LINK_SHAKES_HANDS, LINK_RECEIVES };

/* One connection, and what comes by it: the link leaves it when it closes it, and it frees itself. */
struct wire {
    struct conn conn;
    struct link *link;         /* NULL: it was left */
    struct receiver *receiver; /* LINK_RECEIVES: one of these */
    struct foreign *foreign;
    uint64_t number; /* of what is received; no other one has it */
};

/* What other threads see of a link: atomics are relaxed; worker 0 writes. */
struct link_shown {
    _Atomic int state; /* enum master_state */
    _Atomic bool is_held;
    _Atomic int64_t io_us, down_us;
    _Atomic uint64_t name, origin, connect_tries;
    _Atomic uint64_t input_bytes; /* of all connections */
    struct receiver_counts counts;
};

/* Owner: worker 0, but for `shown`. */
struct link {
    struct peer peer; /* const */
    enum link_state state;
    struct dial dial;
    struct wire *wire;
    struct handshake handshake;
    uint64_t last_io_us, attempt_us;
    uint64_t input_before;            /* bytes of former connections */
    struct foreign_position position; /* in the history of a server of another kind */
    bool is_paused;                   /* its connection */
    bool waits_for_script;            /* paused since data came inside a script that runs for long (reentrant.h) */
    bool is_wanted;                   /* while the list is compared with the peers */
    struct loop_timer retry;
    char reason[REASON_BYTES]; /* that was told last, since the link was up */
    char address[NAME_BYTES];  /* const: of the peer, for the log */
    struct link_shown shown;
};

static struct {
    struct worker *worker; /* const after setup */
    struct spinlock lock;  /* rank LOCK_REGISTRY; guards the array for other threads: worker 0 alone changes it */
    struct link *items[PEERS_MOST];
    uint32_t count;
    uint64_t generation;       /* worker 0's: of the peers that are in the list */
    uint64_t wires;            /* worker 0's: that ever received */
    bool is_anew;              /* worker 0's: all are to ask anew */
    _Atomic uint32_t up_count; /* atomic: relaxed */
} links = {.lock = {.rank = LOCK_REGISTRY}};

/* For threads that are not the server's: its workers may be gone. */
static struct {
    pthread_mutex_t lock;
    struct worker *worker GUARDED_BY(lock); /* NULL: nobody is to be woken */
} waker = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define SHOW(link, field, value) atomic_store_explicit(&(link)->shown.field, (value), memory_order_relaxed)
#define SHOWN(link, field) atomic_load_explicit(&(link)->shown.field, memory_order_relaxed)

static void go_on(struct link *link);

static void wake(void)
{
    mutex_lock(&waker.lock);
    if (waker.worker != NULL)
        worker_wake(waker.worker);
    mutex_unlock(&waker.lock);
}

/* ------------------------------------------------------------------------------------------------ what is shown -- */

static enum master_state shown_state(const struct link *link)
{
    switch (link->state) {
    case LINK_RESTS:
        return MASTER_CONNECT;
    case LINK_LOOKS_UP:
    case LINK_CONNECTS:
        return MASTER_CONNECTING;
    case LINK_SHAKES_HANDS:
        return MASTER_HANDSHAKE;
    case LINK_RECEIVES:
        break;
    }
    if (link->wire->foreign != NULL)
        return foreign_streams(link->wire->foreign) ? MASTER_CONNECTED : MASTER_SYNC;
    if (!receiver_is_up(link->wire->receiver))
        return MASTER_HANDSHAKE;
    return receiver_takes_state(link->wire->receiver) ? MASTER_SYNC : MASTER_CONNECTED;
}

static bool is_up(enum master_state state)
{
    return state == MASTER_SYNC || state == MASTER_CONNECTED;
}

static void note_node(struct link *link)
{
    const struct receiver *receiver = link->wire->receiver;
    const struct uuid uuid = uuid_of_id(receiver_name(receiver));
    char name[UUID_TEXT_BYTES + 1];

    SHOW(link, name, receiver_name(receiver));
    SHOW(link, origin, receiver_origin(receiver));
    uuid_format(&uuid, name);
    log_notice("Link to the peer %s: up, to the node %s", link->address, name);
}

static void note_up(struct link *link)
{
    atomic_fetch_add_explicit(&links.up_count, 1, memory_order_relaxed);
    link->reason[0] = '\0';
    if (link->wire->foreign == NULL)
        note_node(link);
    else
        log_notice("Link to the peer %s: up, to a server that is no active node of this kind", link->address);
}

static void note_down(struct link *link)
{
    SHOW(link, down_us, (int64_t)clock_monotonic_us());
    atomic_fetch_sub_explicit(&links.up_count, 1, memory_order_relaxed);
}

static void show(struct link *link)
{
    const enum master_state before = (enum master_state)SHOWN(link, state), now = shown_state(link);

    SHOW(link, is_held, link->is_paused);
    SHOW(link, state, now);
    if (!is_up(before) && is_up(now))
        note_up(link);
    else if (is_up(before) && !is_up(now))
        note_down(link);
}

static void set_state(struct link *link, enum link_state state)
{
    link->state = state;
    show(link);
}

static int64_t seconds_since(int64_t us)
{
    return us < 0 ? -1 : MAX((int64_t)clock_monotonic_us() - us, 0) / 1000000;
}

static void fill_facts(const struct link *link, struct link_facts *facts)
{
    const int64_t heard_ms = SHOWN(link, counts.heard_ms);

    *facts = (struct link_facts){.id = link->peer.id, .port = link->peer.port};
    (void)snprintf(facts->host, sizeof(facts->host), "%s", link->peer.host);
    facts->state = (enum master_state)SHOWN(link, state);
    facts->name = SHOWN(link, name);
    facts->origin = SHOWN(link, origin);
    facts->last_io_s = is_up(facts->state) ? seconds_since(SHOWN(link, io_us)) : -1;
    facts->down_s = is_up(facts->state) ? -1 : seconds_since(SHOWN(link, down_us));
    facts->heard_ms = heard_ms == 0 ? -1 : MAX(clock_wall_ms() - heard_ms, 0);
    facts->is_held = SHOWN(link, is_held);
    facts->input_bytes = SHOWN(link, input_bytes);
    facts->state_bytes = SHOWN(link, counts.state_bytes);
    facts->entries = SHOWN(link, counts.entries);
    facts->old = SHOWN(link, counts.old);
    facts->gaps = SHOWN(link, counts.gaps);
    facts->connect_tries = SHOWN(link, connect_tries);
}

void links_each(void (*visit)(const struct link_facts *facts, void *context), void *context)
{
    struct link_facts *facts;
    uint32_t count;

    spinlock_assert_none_held();
    facts = mem_alloc(PEERS_MOST * sizeof(*facts));
    spinlock_acquire(&links.lock);
    count = links.count;
    assert(count <= PEERS_MOST);
    for (uint32_t i = 0; i < count; i++)
        fill_facts(links.items[i], &facts[i]);
    spinlock_release(&links.lock);
    for (uint32_t i = 0; i < count; i++)
        visit(&facts[i], context);
    mem_free(facts);
}

uint32_t links_up_count(void)
{
    return atomic_load_explicit(&links.up_count, memory_order_relaxed);
}

void links_ask_anew(void)
{
    worker_assert_zero(links.worker);
    links.is_anew = true;
    worker_wake(links.worker);
}

/* ------------------------------------------------------------------------------------------------------ its end -- */

/* Another receiver may have stood behind this one's wish for the gate, which is gone with it. */
static void leave_wire(struct link *link)
{
    struct wire *wire = link->wire;

    link->wire = NULL;
    link->is_paused = link->waits_for_script = false;
    if (wire == NULL)
        return;
    link->input_before += wire->conn.bytes_in;
    wire->link = NULL;
    if (wire->receiver != NULL)
        receiver_leave(wire->receiver);
    if (wire->foreign != NULL)
        foreign_leave(wire->foreign);
    if (wire->receiver != NULL || wire->foreign != NULL)
        worker_wake(links.worker);
}

static void end_attempt(struct link *link)
{
    struct wire *wire = link->wire;

    set_state(link, LINK_RESTS);
    leave_wire(link);
    if (wire != NULL)
        conn_close(&wire->conn);
    dial_end(&link->dial);
    handshake_fini(&link->handshake);
}

static void on_retry(struct loop *loop, struct loop_timer *timer)
{
    (void)loop;
    go_on(container_of(timer, struct link, retry));
}

static void retry_in(struct link *link, int64_t least_us)
{
    const int64_t spent_us = (int64_t)(clock_monotonic_us() - link->attempt_us);

    end_attempt(link);
    loop_timer_start(links.worker->loop, &link->retry, MAX(least_us - spent_us, 0), on_retry);
}

static void PRINTF_LIKE(3, 4) give_up(struct link *link, int64_t retry_us, const char *format, ...)
{
    char reason[REASON_BYTES];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    if (strcmp(reason, link->reason) != 0)
        log_warning("Link to the peer %s: %s", link->address, reason);
    (void)snprintf(link->reason, sizeof(link->reason), "%s", reason);
    retry_in(link, retry_us);
}

/* ----------------------------------------------------------------------------------------------------- receiving -- */

static void pause_input(struct link *link, bool is_paused)
{
    if (link->is_paused == is_paused)
        return;
    link->is_paused = is_paused;
    if (is_paused)
        conn_pause(&link->wire->conn);
    else
        conn_resume(&link->wire->conn);
}

static const char *error_of(const struct wire *wire)
{
    return wire->foreign != NULL ? foreign_error(wire->foreign) : receiver_error(wire->receiver);
}

static enum receiver_result go_on_receiving(struct wire *wire)
{
    return wire->foreign != NULL ? foreign_go_on(wire->foreign) : receiver_go_on(wire->receiver);
}

static void settle(struct link *link, enum receiver_result result)
{
    switch (result) {
    case RECEIVER_GOES_ON:
    case RECEIVER_WAITS:
        pause_input(link, result == RECEIVER_WAITS);
        show(link);
        break;
    case RECEIVER_ANEW:
    case RECEIVER_BROKEN:
        give_up(link, RETRY_US, "%s", error_of(link->wire));
        break;
    case RECEIVER_REFUSED:
        give_up(link, RETRY_REFUSED_US, "%s", error_of(link->wire));
        break;
    }
}

/* A state is taken once: while one link has asked for what is missing here, the others wait for what comes of it. */
static bool may_ask(uint32_t id)
{
    if (loading_runs() || loading_replaces())
        return false;
    for (uint32_t i = 0; i < links.count; i++) {
        const struct link *link = links.items[i];

        if (link->peer.id != id && link->state == LINK_RECEIVES && link->wire->receiver != NULL &&
            receiver_asks(link->wire->receiver))
            return false;
    }
    return true;
}

static struct receiver_options options_of(struct link *link)
{
    return (struct receiver_options){.link = link->peer.id,
                                     .peer = link->address,
                                     .counts = &link->shown.counts,
                                     .on_change = wake,
                                     .may_ask = may_ask};
}

static void begin_foreign(struct link *link, bool continues)
{
    const struct receiver_options options = options_of(link);

    link->wire->foreign = foreign_create(links.worker, &link->wire->conn, &link->handshake, continues, &link->position,
                                         &options);
    handshake_fini(&link->handshake);
    set_state(link, LINK_RECEIVES);
}

static void begin_frames(struct link *link)
{
    const struct receiver_options options = options_of(link);

    handshake_fini(&link->handshake);
    link->wire->receiver = receiver_create(links.worker, &link->wire->conn, &options);
    link->wire->number = ++links.wires;
    set_state(link, LINK_RECEIVES);
}

static struct link *find(uint32_t id)
{
    for (uint32_t i = 0; i < links.count; i++) {
        if (links.items[i]->peer.id == id)
            return links.items[i];
    }
    return NULL;
}

void links_say(const struct node_orders *orders)
{
    worker_assert_zero(links.worker);
    for (uint32_t i = 0; i < orders->count; i++) {
        const struct node_order *order = &orders->items[i];
        const struct link *link = find(order->link);

        if (link == NULL || link->state != LINK_RECEIVES || link->wire->receiver == NULL ||
            !receiver_is_up(link->wire->receiver))
            continue; /* the node hears, or has heard, that it is down */
        if (order->wants)
            receiver_want(link->wire->receiver, order->origin, order->have);
        else
            receiver_stop(link->wire->receiver, order->origin);
    }
}

static const struct wire *find_comparer(uint64_t name)
{
    for (uint32_t i = 0; i < links.count; i++) {
        const struct link *link = links.items[i];

        if (link->state == LINK_RECEIVES && link->wire->receiver != NULL &&
            receiver_name(link->wire->receiver) == name && receiver_compares(link->wire->receiver))
            return link->wire;
    }
    return NULL;
}

uint64_t links_comparer(uint64_t name)
{
    const struct wire *wire;

    worker_assert_zero(links.worker);
    wire = find_comparer(name);
    return wire != NULL ? wire->number : 0;
}

uint64_t links_compare(uint64_t name, enum frame_kind kind, const struct buffer *body)
{
    const struct wire *wire;

    worker_assert_zero(links.worker);
    wire = find_comparer(name);
    if (wire == NULL)
        return 0;
    receiver_say(wire->receiver, kind, body);
    return wire->number;
}

/* ------------------------------------------------------------------------------------------------- the handshake -- */

static void send_buffer(struct link *link, const struct buffer *out)
{
    struct conn *conn = &link->wire->conn;

    if (out->size == 0)
        return;
    output_append(&conn->output, out->data, out->size);
    conn_write_pending(conn);
}

static size_t take_handshake(struct link *link, const char *data, size_t size)
{
    struct buffer out = {0};
    size_t used;
    const enum handshake_result result = handshake_take(&link->handshake, data, size, &used, &out);
    char reason[HANDSHAKE_ERROR_BYTES];

    switch (result) {
    case HANDSHAKE_MORE:
        send_buffer(link, &out);
        break;
    case HANDSHAKE_FRAMES:
        begin_frames(link);
        break;
    case HANDSHAKE_CONTINUES:
    case HANDSHAKE_FULL:
        begin_foreign(link, result == HANDSHAKE_CONTINUES);
        break;
    case HANDSHAKE_FAILED:
        (void)snprintf(reason, sizeof(reason), "%s", link->handshake.error);
        give_up(link, RETRY_US, "%s", reason);
        break;
    }
    buffer_fini(&out);
    return used;
}

/* ------------------------------------------------------------------------------------------------ the connection -- */

/* A script has this worker in the middle of a command: what peers send waits for its end. */
static void wait_for_script(struct link *link)
{
    if (link->is_paused)
        return;
    pause_input(link, true);
    link->waits_for_script = true;
    worker_wake(links.worker); /* `go_on` runs when the script has ended */
}

static void note_input(struct link *link)
{
    link->last_io_us = clock_monotonic_us();
    SHOW(link, io_us, (int64_t)link->last_io_us);
    SHOW(link, input_bytes, link->input_before + link->wire->conn.bytes_in);
}

/* Takes what belongs to the present state; it may be another afterwards, and the link may have left the wire. */
static size_t take_some(struct link *link, char *data, size_t size)
{
    size_t used = 0;

    if (link->state == LINK_SHAKES_HANDS)
        return take_handshake(link, data, size);
    if (link->state == LINK_RECEIVES && link->wire->foreign != NULL)
        settle(link, foreign_take(link->wire->foreign, data, size, &used));
    else if (link->state == LINK_RECEIVES)
        settle(link, receiver_take(link->wire->receiver, data, size, &used));
    return used;
}

static size_t on_data(struct conn *conn, char *data, size_t size)
{
    const struct wire *wire = container_of(conn, struct wire, conn);
    struct link *link = wire->link;
    size_t used = 0;

    if (link == NULL)
        return size;
    note_input(link);
    if (UNLIKELY(links.worker->reentrant)) {
        wait_for_script(link);
        return 0;
    }
    while (used < size && wire->link != NULL && !link->is_paused) {
        const enum link_state state = link->state;
        const size_t step = take_some(link, data + used, size - used);

        used += step;
        if (step == 0 && state == link->state)
            break;
    }
    return wire->link != NULL ? used : size;
}

static void on_direct_done(struct conn *conn)
{
    const struct wire *wire = container_of(conn, struct wire, conn);
    struct link *link = wire->link;

    if (link == NULL)
        return;
    note_input(link);
    if (receiver_take_direct(wire->receiver))
        return;
    if (UNLIKELY(links.worker->reentrant))
        wait_for_script(link);
    else
        settle(link, receiver_go_on(wire->receiver));
}

static void on_open(struct conn *conn)
{
    struct link *link = container_of(conn, struct wire, conn)->link;
    const struct uuid origin = uuid_of_id(node_origin());
    char uuid[UUID_TEXT_BYTES + 1];
    struct buffer out = {0};

    if (link == NULL)
        return;
    link->last_io_us = clock_monotonic_us();
    uuid_format(&origin, uuid);
    dial_begin_handshake(&link->handshake,
                         (struct handshake_facts){.uuid = uuid,
                                                  .id = link->position.id[0] != '\0' ? link->position.id : NULL,
                                                  .offset = link->position.offset},
                         &out);
    set_state(link, LINK_SHAKES_HANDS);
    send_buffer(link, &out);
    buffer_fini(&out);
}

static void try_address(struct link *link);

/* The connection has ended by itself. */
static void lose(struct link *link, enum conn_close_reason reason, const char *detail)
{
    const enum link_state state = link->state;
    const char *step = handshake_step_name(link->handshake.step);

    if (state == LINK_CONNECTS && reason != CONN_CLOSED_HANDSHAKE && dial_has_more(&link->dial)) {
        leave_wire(link);
        try_address(link);
    } else if (state == LINK_CONNECTS) {
        give_up(link, RETRY_US, "can't connect: %s", detail[0] != '\0' ? detail : "the connection was closed");
    } else if (state == LINK_SHAKES_HANDS) {
        give_up(link, RETRY_US, "the connection ended before the reply to %s", step);
    } else if (link->wire->receiver != NULL && !receiver_is_up(link->wire->receiver)) {
        give_up(link, RETRY_US, "the connection ended before its hello: its log may have the reason");
    } else {
        give_up(link, RETRY_US, "the connection was lost%s%s", detail[0] != '\0' ? ": " : "", detail);
    }
}

static void on_closed(struct conn *conn, enum conn_close_reason reason, const char *detail)
{
    struct wire *wire = container_of(conn, struct wire, conn);

    if (wire->link != NULL)
        lose(wire->link, reason, detail);
    receiver_destroy(&wire->receiver);
    foreign_destroy(&wire->foreign);
    mem_free(wire);
}

static const struct conn_handler handler = {.on_data = on_data,
                                            .on_direct_done = on_direct_done,
                                            .on_open = on_open,
                                            .on_closed = on_closed};

/* Behind the lookup, and again if an address has failed. */
static void try_address(struct link *link)
{
    struct wire *wire = mem_alloc_zero(sizeof(*wire));
    char error[DIAL_ERROR_BYTES];

    assert(link->wire == NULL);
    switch (dial_next(&link->dial, links.worker->loop, &wire->conn, &handler, error)) {
    case DIAL_WAITS:
        mem_free(wire);
        break;
    case DIAL_CONNECTS:
        wire->link = link;
        link->wire = wire;
        link->last_io_us = clock_monotonic_us();
        set_state(link, LINK_CONNECTS);
        break;
    case DIAL_FAILED:
        mem_free(wire);
        give_up(link, RETRY_US, "%s", error);
        break;
    }
}

static void begin_attempt(struct link *link)
{
    loop_timer_stop(links.worker->loop, &link->retry);
    link->attempt_us = link->last_io_us = clock_monotonic_us();
    atomic_fetch_add_explicit(&link->shown.connect_tries, 1, memory_order_relaxed);
    set_state(link, LINK_LOOKS_UP);
    dial_begin(&link->dial, link->peer.host, link->peer.port, wake);
    try_address(link);
}

/* --------------------------------------------------------------------------------------------------- the list -- */

static void add(const struct peer *peer)
{
    struct link *link = mem_alloc_zero(sizeof(*link));

    link->peer = *peer;
    (void)snprintf(link->address, sizeof(link->address), "%s:%d", peer->host, peer->port);
    SHOW(link, down_us, (int64_t)clock_monotonic_us());
    SHOW(link, io_us, -1);
    assert(links.count < PEERS_MOST);
    spinlock_acquire(&links.lock);
    links.items[links.count++] = link;
    spinlock_release(&links.lock);
}

static void drop(uint32_t index)
{
    struct link *link = links.items[index];

    end_attempt(link);
    loop_timer_stop(links.worker->loop, &link->retry);
    spinlock_acquire(&links.lock);
    links.count--;
    memmove(&links.items[index], &links.items[index + 1], (links.count - index) * sizeof(struct link *));
    spinlock_release(&links.lock);
    mem_free(link);
}

static void note_peer(const struct peer *peer, void *context)
{
    struct link *link = find(peer->id);

    (void)context;
    if (link != NULL)
        link->is_wanted = true;
}

/* Where they have changed once more since note_peer, the next comparison adds it. */
static void add_peer(const struct peer *peer, void *context)
{
    (void)context;
    if (find(peer->id) == NULL && links.count < PEERS_MOST)
        add(peer);
}

/* Peers were added or removed. */
static void compare_list(void)
{
    links.generation = peers_generation();
    for (uint32_t i = 0; i < links.count; i++)
        links.items[i]->is_wanted = false;
    peers_each(note_peer, NULL);
    for (uint32_t i = links.count; i-- != 0;) {
        if (!links.items[i]->is_wanted)
            drop(i);
    }
    peers_each(add_peer, NULL);
}

/* ------------------------------------------------------------------------------------------------------- turning -- */

static bool may_attempt(const struct link *link)
{
    return !loop_timer_is_running(&link->retry) && !loading_runs() && !loading_replaces() &&
           !server_is_stopping(links.worker->server);
}

static void go_on(struct link *link)
{
    assert(!links.worker->reentrant);
    switch (link->state) {
    case LINK_RESTS:
        if (may_attempt(link))
            begin_attempt(link);
        break;
    case LINK_LOOKS_UP:
        try_address(link);
        break;
    case LINK_CONNECTS:
        break;
    case LINK_SHAKES_HANDS:
    case LINK_RECEIVES:
        if (LIKELY(!link->is_paused))
            break;
        link->waits_for_script = false;
        link->last_io_us = clock_monotonic_us();
        if (link->state == LINK_RECEIVES)
            settle(link, go_on_receiving(link->wire));
        else
            pause_input(link, false);
        break;
    }
}

/* Who rests does not any more. */
static void ask_anew(void)
{
    for (uint32_t i = 0; i < links.count; i++) {
        loop_timer_stop(links.worker->loop, &links.items[i]->retry);
        if (links.items[i]->state == LINK_RECEIVES)
            give_up(links.items[i], 0, "another state was taken over: asks anew");
    }
}

static void go_on_all(void)
{
    if (UNLIKELY(peers_generation() != links.generation))
        compare_list();
    if (LIKELY(links.count == 0))
        return;
    if (UNLIKELY(links.is_anew)) {
        links.is_anew = false;
        ask_anew();
    }
    for (uint32_t i = 0; i < links.count; i++)
        go_on(links.items[i]);
}

static void on_wake(struct worker *worker)
{
    if (worker->index == 0)
        go_on_all();
}

static void look_after(struct link *link)
{
    const uint64_t limit_us = (uint64_t)OPTION_GET(option_repl_timeout) * 1000 * 1000;

    if (link->state == LINK_RESTS)
        return;
    if (link->is_paused) { /* it is this server that lets the other wait */
        link->last_io_us = clock_monotonic_us();
    } else if (clock_monotonic_us() - link->last_io_us > limit_us) {
        give_up(link, RETRY_US, "nothing was received for %lld seconds (repl-timeout)",
                (long long)OPTION_GET(option_repl_timeout));
        return;
    }
    if (link->state == LINK_RECEIVES && link->wire->foreign != NULL)
        foreign_say_alive(link->wire->foreign);
    else if (link->state == LINK_RECEIVES && receiver_is_up(link->wire->receiver) &&
             (receiver_is_answered(link->wire->receiver) || may_ask(link->peer.id)))
        receiver_say_alive(link->wire->receiver);
}

/* Nobody tells when memory is free. */
static void on_sample(struct server *server)
{
    worker_assert_zero(&server->workers[0]);
    if (UNLIKELY(room_is_waited_for()) && !links.worker->reentrant && room_is_there(links.worker))
        go_on_all();
}

static void on_second(struct worker *worker)
{
    if (worker->index != 0)
        return;
    go_on_all();
    for (uint32_t i = 0; i < links.count; i++)
        look_after(links.items[i]);
}

/* A script that runs for long. */
static void on_inner_begin(struct worker *worker)
{
    if (worker->index != 0)
        return;
    for (uint32_t i = 0; i < links.count; i++) {
        if (links.items[i]->state == LINK_RECEIVES)
            wait_for_script(links.items[i]);
    }
}

static void on_start(struct worker *worker)
{
    if (worker->index != 0)
        return;
    mutex_lock(&waker.lock);
    waker.worker = worker;
    mutex_unlock(&waker.lock);
    compare_list();
    go_on_all();
}

static void on_stop(struct worker *worker)
{
    if (worker->index != 0)
        return;
    mutex_lock(&waker.lock);
    waker.worker = NULL;
    mutex_unlock(&waker.lock);
    while (links.count != 0)
        drop(links.count - 1);
}

static bool on_server_start(struct server *server)
{
    thread_assert_main();
    links.worker = &server->workers[0];
    return true;
}

/* With the gate owned. */
static void on_peers_change(void)
{
    worker_wake(links.worker);
}

void links_setup(void)
{
    thread_assert_main();
    peers_on_change(on_peers_change);
    wrapping_setup();
}

static void on_end(struct server *server)
{
    (void)server;
    keydb_stream_end();
    wrapping_end();
}

const struct lifecycle links_lifecycle = {
    .server_end = on_end,
    .server_start = on_server_start,
    .worker_start = on_start,
    .worker_wake = on_wake,
    .worker_inner_begin = on_inner_begin,
    .worker_second = on_second,
    .server_sample = on_sample,
    .worker_stop = on_stop,
};
