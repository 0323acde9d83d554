#include "server/durable/aof_hold.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "server/core/client.h"
#include "server/core/lifecycle.h"
#include "server/core/server.h"
#include "server/durable/aof.h"
#include "server/durable/aof_writer.h"
#include "server/durable/file_options.h"

#include <stdint.h>

_Atomic bool aof_hold_on; /* global: see the header */
/* A worker's; its own thread's. */
static struct state {
    struct list held;            /* of struct held_output, in no order */
    _Atomic uint64_t held_bytes; /* atomic, relaxed: their memory, at the last turn's end */
    /* atomic, seq_cst: one more than the journal's offset up to which the AOF is to be synced, or replies may be sent,
     * for the worker to be woken; 0: it need not */
    _Atomic uint64_t synced_wanted, acked_wanted;
} CACHE_ALIGNED states[WORKERS_MOST + 1];

static struct state *of(const struct worker *worker)
{
    assert(worker->index <= WORKERS_MOST);
    return &states[worker->index];
}

static struct spinlock update_lock = {.rank = LOCK_REGISTRY}; /* guards the change of aof_hold_on */

/* The output that a client's connection may not send yet. There are at most two marks: for the oldest output, and for
 * all later output. So the oldest output is sent in time, however much follows. Its worker's. */
struct held_output {
    struct list_node node; /* worker's held_outputs */
    struct client *client;
    bool until_done; /* see aof_hold_until_done */
    struct {
        uint64_t position; /* in the journal */
        size_t bytes;
    } first, later;
};

/* ------------------------------------------------------------------------------------------------------ waking -- */

/* To be woken when the writer has come to `offset`. The look at how far it is comes after this: one of the two sees the
 * other. */
static void want(_Atomic uint64_t *wanted, uint64_t offset)
{
    uint64_t before = atomic_load_explicit(wanted, memory_order_relaxed);

    if (before == 0 || offset + 1 < before)
        atomic_store(wanted, offset + 1);
}

static bool take(_Atomic uint64_t *wanted, uint64_t offset)
{
    uint64_t before = atomic_load(wanted);

    return before != 0 && before <= offset + 1 && atomic_compare_exchange_strong(wanted, &before, 0);
}

void aof_hold_tell(void)
{
    struct server *server = server_instance();
    uint64_t synced = aof_synced_offset(), acked = aof_acked_position();

    atomic_thread_fence(memory_order_seq_cst);
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker *worker = &server->workers[i];
        bool is_reached = take(&of(worker)->synced_wanted, synced);

        if (take(&of(worker)->acked_wanted, acked) || is_reached)
            worker_wake(worker);
    }
}

static void wake_all(void)
{
    struct server *server = server_instance();

    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker *worker = &server->workers[i];

        atomic_store(&of(worker)->synced_wanted, 0);
        atomic_store(&of(worker)->acked_wanted, 0);
        worker_wake(worker);
    }
}

bool aof_hold_is_held(void)
{
    const struct server *server = server_instance();

    for (unsigned i = 0; i < server->worker_count; i++) {
        if (atomic_load(&of(&server->workers[i])->acked_wanted) != 0)
            return true;
    }
    return false;
}

bool aof_hold_is_waited_for(void)
{
    const struct server *server = server_instance();

    for (unsigned i = 0; i < server->worker_count; i++) {
        if (atomic_load_explicit(&of(&server->workers[i])->synced_wanted, memory_order_relaxed) != 0)
            return true;
    }
    return false;
}

void aof_hold_ask(struct worker *worker, uint64_t offset)
{
    worker_assert_self(worker);
    want(&of(worker)->synced_wanted, offset);
    aof_writer_poke(); /* it may rest because nobody waited */
}

/* ------------------------------------------------------------------------------------------------------ output -- */

static void release(struct held_output *held)
{
    assert(held->client->held_output == held);
    held->client->held_output = NULL;
    list_remove(&held->node);
    mem_free(held);
}

static void forget(struct client *client)
{
    client_assert_owned(client);
    if (client->held_output != NULL)
        release(client->held_output);
}

static struct held_output *held_create(struct client *client)
{
    struct held_output *held = mem_alloc_zero(sizeof(*held));

    client_assert_owned(client);
    assert(client->held_output == NULL);
    held->client = client;
    client->held_output = held;
    list_push_back(&of(client->worker)->held, &held->node);
    conn_hold(&client->conn);
    return held;
}

void aof_hold_fence(struct client *client)
{
    client_assert_owned(client);
    if (client->held_output == NULL)
        (void)held_create(client);
    worker_at_turn_end(client->worker);
}

/* Output that waits for nothing else is sent at the end of the turn. */
void aof_hold_unfence(struct client *client)
{
    client_assert_owned(client);
    assert(client->held_output != NULL && client->rendezvous_count == 0);
    worker_at_turn_end(client->worker);
}

void aof_hold_until_done(struct client *client)
{
    client_assert_owned(client);
    aof_hold_fence(client);
    client->held_output->until_done = true;
}

static bool waits_otherwise(const struct held_output *held)
{
    return held->client->rendezvous_count != 0 || (held->until_done && aof_order_pending());
}

static void hold(struct conn *conn, void *context)
{
    const uint64_t *position = context;
    struct client *client = client_of_conn(conn);
    struct held_output *held = client != NULL ? client->held_output : NULL;
    size_t fresh = output_size(&conn->output);

    /* A replica may have what the disk does not have yet. */
    if (client == NULL || (client->flags & CLIENT_REPLICA) != 0 || (conn->flags & CONN_CLOSING) != 0 || fresh == 0)
        return;
    if (held == NULL) {
        held = held_create(client);
    } else {
        assert(conn_held_size(conn) >= held->first.bytes + held->later.bytes);
        fresh = conn_held_size(conn) - held->first.bytes - held->later.bytes;
        if (fresh == 0)
            return;
    }
    if (held->first.bytes == 0) {
        held->first.bytes = fresh;
        held->first.position = *position;
    } else {
        held->later.bytes += fresh;
        held->later.position = *position;
    }
}

/* Releases the output whose effects are on the disk. Returns whether some output still waits for the disk. */
static bool release_up_to(struct worker *worker, uint64_t acked)
{
    struct output_pool *pool = loop_output_pool(worker->loop);
    uint64_t held_bytes = 0;
    bool waits = false;

    LIST_FOREACH_SAFE(node, &of(worker)->held) {
        struct held_output *held = container_of(node, struct held_output, node);
        struct conn *conn = &held->client->conn;
        const size_t bytes = output_memory_estimate(&conn->output);

        if (waits_otherwise(held)) {
            held_bytes += bytes;
            continue;
        }
        if (held->first.position <= acked)
            output_pool_add_transient(pool, bytes);
        while (held->first.bytes != 0 && held->first.position <= acked) {
            conn_clear(conn, held->first.bytes);
            held->first = held->later;
            held->later.bytes = 0;
        }
        if (held->first.bytes == 0) {
            conn_unhold(conn);
            release(held);
        } else {
            waits = true;
            held_bytes += bytes;
        }
    }
    atomic_store_explicit(&of(worker)->held_bytes, held_bytes, memory_order_relaxed);
    return waits;
}

/* The position that the file must reach before the output of this turn may be sent. */
static uint64_t position_needed(const struct worker *worker)
{
    struct journal *journal = &worker->server->journal;

    if (!aof_hold_is_on())
        return 0;
    if (OPTION_GET(option_appendfsync) == AOF_SYNC_ALWAYS)
        return MIN(journal_end_position(journal), aof_writer_end_position());
    if (UNLIKELY(aof_writer_fails()))
        return 0; /* clients hear of it: MISCONF */
    return MIN(journal_unkept_position(journal), aof_writer_end_unkept());
}

static void hold_output(struct worker *worker)
{
    uint64_t needed = position_needed(worker), acked = aof_acked_position();

    if (acked < needed)
        loop_each_written(worker->loop, hold, &needed);
    if (LIKELY(list_is_empty(&of(worker)->held)) &&
        LIKELY(atomic_load_explicit(&of(worker)->held_bytes, memory_order_relaxed) == 0))
        return;
    if (!release_up_to(worker, needed != 0 ? acked : UINT64_MAX))
        return;
    want(&of(worker)->acked_wanted, acked + 1);
    aof_writer_hurry();
    if (aof_acked_position() != acked || position_needed(worker) == 0)
        worker_wake(worker); /* the writer may have missed this worker's wish: look again */
}

/* -------------------------------------------------------------------------------------------------------- turns -- */

void aof_hold_update(void)
{
    /* The owner of the gate and the writer may be here at once: the last one has seen the changes of both. */
    spinlock_acquire(&update_lock);
    atomic_store(&aof_hold_on, aof_state() == AOF_ON || aof_state() == AOF_STOPPING || aof_state() == AOF_SUSPENDED);
    atomic_store(&lifecycle_every_turn, atomic_load(&aof_hold_on));
    spinlock_release(&update_lock);
    wake_all(); /* they look again */
}

void aof_hold_turn(struct worker *worker)
{
    worker_assert_self(worker);
    if (worker->has_journaled) {
        worker->has_journaled = false;
        aof_writer_poke();
    }
    if (aof_hold_is_on() || !list_is_empty(&of(worker)->held))
        hold_output(worker);
    if (!list_is_empty(&of(worker)->held))
        worker_at_turn_end(worker); /* of the next turn */
}

static void turn_end(struct worker *worker)
{
    const struct state *mine = of(worker);
    uint64_t from;

    if (!worker->has_journaled && !aof_hold_is_on() && list_is_empty(&mine->held))
        return; /* another part asked for the end of this turn */
    from = tick_now();
    aof_hold_turn(worker);
    counter_add(&worker->stats.aof_ticks, tick_now() - from);
}

uint64_t aof_hold_bytes(const struct worker *worker)
{
    return atomic_load_explicit(&of(worker)->held_bytes, memory_order_relaxed);
}

static void init(struct worker *worker)
{
    struct state *mine = of(worker);

    list_init(&mine->held);
    atomic_init(&mine->held_bytes, 0);
    atomic_init(&mine->synced_wanted, 0);
    atomic_init(&mine->acked_wanted, 0);
}

const struct lifecycle aof_hold_lifecycle = {
    .worker_init = init,
    .worker_turn_end = turn_end,
    .client_withdraw = forget,
};
