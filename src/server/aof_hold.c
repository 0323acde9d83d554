#include "server/aof_hold.h"

#include "base/clock.h"
#include "base/mem.h"
#include "server/aof.h"
#include "server/aof_options.h"
#include "server/aof_writer.h"
#include "server/client.h"
#include "server/server.h"

#include <stdint.h>

_Atomic bool aof_hold_on; /* global: see the header */

/* A client that waits; its worker's. */
struct synced_wait {
    struct list_node node; /* worker's synced_waits */
    struct client *client;
    uint64_t offset;
    enum aof_wait how;
    struct loop_timer timer;
    void (*reply)(struct client *client, bool is_synced);
};

/* ------------------------------------------------------------------------------------------------------ waking -- */

/* To be woken when the writer has synced up to `offset`. Then one look is enough: what it had synced before is seen. */
static void want(struct worker *worker, uint64_t offset)
{
    uint64_t wanted = atomic_load_explicit(&worker->synced_wanted, memory_order_relaxed);

    if (wanted == 0 || offset + 1 < wanted)
        atomic_store(&worker->synced_wanted, offset + 1);
    aof_writer_poke(); /* it may rest because nobody waited */
}

void aof_hold_tell(void)
{
    struct server *server = server_instance();
    uint64_t synced = aof_synced_offset();

    atomic_thread_fence(memory_order_seq_cst); /* pairs with want() and the look after it */
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker *worker = &server->workers[i];
        uint64_t wanted = atomic_load(&worker->synced_wanted);

        if (wanted != 0 && wanted <= synced + 1 &&
            atomic_compare_exchange_strong(&worker->synced_wanted, &wanted, 0))
            worker_wake(worker);
    }
}

static void wake_all(void)
{
    struct server *server = server_instance();

    for (unsigned i = 0; i < server->worker_count; i++) {
        if (atomic_exchange(&server->workers[i].synced_wanted, 0) != 0)
            worker_wake(&server->workers[i]);
    }
}

bool aof_hold_is_waited_for(void)
{
    const struct server *server = server_instance();

    for (unsigned i = 0; i < server->worker_count; i++) {
        if (atomic_load_explicit(&server->workers[i].synced_wanted, memory_order_relaxed) != 0)
            return true;
    }
    return false;
}

/* ----------------------------------------------------------------------------------------------------- clients -- */

static void end_wait(struct synced_wait *wait)
{
    struct client *client = wait->client;
    bool is_synced = aof_state() == AOF_ON && aof_synced_offset() >= wait->offset;
    void (*reply)(struct client *client, bool is_synced) = wait->reply;

    loop_timer_stop(client->worker->loop, &wait->timer);
    list_remove(&wait->node);
    mem_free(wait);
    reply(client, is_synced);
    client_unblock(client);
}

static void on_timeout(struct loop *loop, struct loop_timer *timer)
{
    struct synced_wait *wait = container_of(timer, struct synced_wait, timer);

    (void)loop;
    if (client_end_wait(wait->client, wait->client->wait_count))
        end_wait(wait);
}

static struct synced_wait *find(struct client *client)
{
    LIST_FOREACH(node, &client->worker->synced_waits) {
        struct synced_wait *wait = container_of(node, struct synced_wait, node);

        if (wait->client == client)
            return wait;
    }
    return NULL;
}

static void on_unblock(struct client *client, bool with_error)
{
    struct synced_wait *wait = find(client);

    if (!with_error) {
        end_wait(wait);
        return;
    }
    loop_timer_stop(client->worker->loop, &wait->timer);
    list_remove(&wait->node);
    mem_free(wait);
    resp_write_error_text(&client->conn.output, "UNBLOCKED client unblocked via CLIENT UNBLOCK");
    client_unblock(client);
}

void aof_hold_forget(struct client *client)
{
    struct synced_wait *wait = list_is_empty(&client->worker->synced_waits) ? NULL : find(client);

    if (wait == NULL)
        return;
    loop_timer_stop(client->worker->loop, &wait->timer);
    list_remove(&wait->node);
    mem_free(wait);
}

/* Those whose offset is synced are answered; the lowest of the others is wanted. */
static void serve_waits(struct worker *worker)
{
    uint64_t synced = aof_synced_offset(), lowest = UINT64_MAX;
    bool is_off = aof_state() == AOF_OFF;

    LIST_FOREACH_SAFE(node, &worker->synced_waits) {
        struct synced_wait *wait = container_of(node, struct synced_wait, node);

        if (wait->how == AOF_WAIT_FOR_EVER)
            continue;
        if (wait->offset > synced && !is_off)
            lowest = MIN(lowest, wait->offset);
        else if (client_end_wait(wait->client, wait->client->wait_count))
            end_wait(wait);
    }
    if (lowest != UINT64_MAX)
        want(worker, lowest);
}

void aof_hold_client(struct client *client, uint64_t offset, enum aof_wait how, int64_t timeout_ms,
                     void (*reply)(struct client *client, bool is_synced))
{
    struct worker *worker = client->worker;
    struct synced_wait *wait = mem_alloc_zero(sizeof(*wait));

    wait->client = client;
    wait->offset = offset;
    wait->how = how;
    wait->reply = reply;
    list_push_back(&worker->synced_waits, &wait->node);
    client_block(client, on_unblock);
    if (timeout_ms != 0) {
        int64_t late_us = (int64_t)clock_monotonic_us() - loop_now_us(worker->loop);

        loop_timer_start(worker->loop, &wait->timer, MIN(timeout_ms, INT64_MAX / 2000) * 1000 + MAX(late_us, 0),
                         on_timeout);
    }
    if (how == AOF_WAIT_SYNCED)
        want(worker, offset);
}

/* -------------------------------------------------------------------------------------------------------- turns -- */

void aof_hold_update(void)
{
    bool on = aof_state() == AOF_ON && OPTION_GET(option_appendfsync) == AOF_SYNC_ALWAYS;

    atomic_store_explicit(&aof_hold_on, on, memory_order_relaxed);
    if (!on)
        wake_all();
}

void aof_hold_turn(struct worker *worker)
{
    if (worker->has_journaled) {
        worker->has_journaled = false;
        aof_writer_poke();
    }
    if (!list_is_empty(&worker->synced_waits))
        serve_waits(worker);
}
