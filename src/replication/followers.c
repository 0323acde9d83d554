#include "replication/followers.h"

#include "base/compiler.h"
#include "base/fence.h"
#include "base/gate.h"
#include "server/core/client.h"
#include "server/core/server.h"
#include "server/core/worker.h"

#include <stdatomic.h>

/* At the end of a turn a link that is behind may be sent so much, if not more was written meanwhile. */
#define TURN_BYTES_LEAST (UINT64_C(1) << 20)

static struct {
    struct list links;                /* of struct follower */
    uint64_t served_end;              /* the journal's end when they were served last */
} states[WORKERS_MOST + 1];           /* each its worker's */
static _Atomic unsigned link_count;   /* atomic: relaxed; of all workers */
static _Atomic uint64_t idle_workers; /* atomic: seq_cst; bit i: wake worker i when there is something new */

struct list *followers_of(struct worker *worker)
{
    worker_assert_self(worker);
    return &states[worker->index].links;
}

void follower_init(struct follower *follower, const struct follower_kind *kind, struct client *client)
{
    client_assert_owned(client);
    *follower = (struct follower){.kind = kind, .client = client};
    list_node_init(&follower->node);
}

void follower_begin(struct follower *follower)
{
    client_assert_owned(follower->client);
    list_push_back(followers_of(follower->client->worker), &follower->node);
    atomic_fetch_add_explicit(&link_count, 1, memory_order_relaxed);
}

void follower_end(struct follower *follower)
{
    client_assert_owned(follower->client);
    if (!follower_has_begun(follower))
        return;
    list_remove(&follower->node);
    atomic_fetch_sub_explicit(&link_count, 1, memory_order_relaxed);
}

/* ------------------------------------------------------------------------------------------------------ waking -- */

static void wake_me(struct worker *worker)
{
    worker_assert_self(worker);
    atomic_fetch_or(&idle_workers, UINT64_C(1) << worker->index);
    fence_full(); /* pairs with followers_wake: what was appended before it is seen now */
}

static void wake(struct worker *worker, uint64_t except)
{
    uint64_t mask;

    fence_full(); /* what this thread has appended comes before the look at the mask */
    if (atomic_load_explicit(&idle_workers, memory_order_relaxed) == 0)
        return;
    mask = atomic_exchange(&idle_workers, 0) & ~except;
    for (; mask != 0; mask &= mask - 1)
        worker_wake(&worker->server->workers[__builtin_ctzll(mask)]);
}

void followers_wake(struct worker *worker)
{
    worker_assert_self(worker);
    wake(worker, 0);
}

/* ----------------------------------------------------------------------------------------------------- serving -- */

static bool serve_each(struct worker *worker)
{
    bool is_idle = false;

    LIST_FOREACH(node, followers_of(worker)) {
        struct follower *follower = container_of(node, struct follower, node);

        if (!conn_is_closing(&follower->client->conn))
            is_idle |= follower->kind->serve(follower);
    }
    return is_idle;
}

/* False: the gate is closed; its opening wakes this worker. */
static bool serve_inside(struct worker *worker)
{
    if (!gate_enter(&worker->member))
        return false;
    if (serve_each(worker)) {
        wake_me(worker);
        (void)serve_each(worker);
    }
    gate_leave(&worker->member);
    return true;
}

/* Sends what is written. True if a socket took everything and its link is still behind `end`: it may be given more. */
static bool flush_each(struct worker *worker, uint64_t end)
{
    bool goes_on = false;

    LIST_FOREACH(node, followers_of(worker)) {
        struct follower *follower = container_of(node, struct follower, node);
        struct conn *conn = &follower->client->conn;
        const uint64_t before = conn->bytes_out;

        if (!follower->streams || conn_is_closing(conn) || output_is_empty(&conn->output))
            continue;
        conn_flush_now(conn);
        if (conn->bytes_out != before && (conn->flags & CONN_BLOCKED_OUT) == 0 && !conn_is_closing(conn))
            goes_on |= !output_is_empty(&conn->output) || follower->kind->is_behind(follower, end);
    }
    return goes_on;
}

/* A turn can take in more than the 256 KiB that a link is given at once: then it is given more, slice by slice, as long
 * as its socket takes it. Twice what was written since the last time is enough to catch up, and keeps the turn short
 * for the clients of this worker. */
static void serve_all(struct worker *worker)
{
    const uint64_t end = journal_end_offset(&worker->server->journal);
    uint64_t *served_end = &states[worker->index].served_end, allowed;

    if (LIKELY(list_is_empty(followers_of(worker))))
        return;
    LIST_FOREACH(node, followers_of(worker)) {
        struct follower *follower = container_of(node, struct follower, node);

        if (follower->kind->look != NULL)
            follower->kind->look(follower, end);
    }
    if (UNLIKELY(worker->reentrant))
        return; /* after the script */
    allowed = MAX(2 * (end - MIN(end, *served_end)), TURN_BYTES_LEAST);
    *served_end = end;
    do {
        if (!serve_inside(worker))
            return;
        allowed -= MIN(allowed, FOLLOWER_AHEAD_BYTES);
    } while (flush_each(worker, end) && allowed != 0);
    if (UNLIKELY(journal_wants_tending(&worker->server->journal)))
        worker_at_turn_end(worker);
}

/* ------------------------------------------------------------------------------------------------------- turns -- */

static void on_turn_end(struct worker *worker)
{
    if (LIKELY(atomic_load_explicit(&link_count, memory_order_relaxed) == 0))
        return;
    /* Also if nothing is journaled any more: it may have come before a script that served others. This worker serves
     * now; within a script it does so later. */
    wake(worker, worker->reentrant ? 0 : UINT64_C(1) << worker->index);
    serve_all(worker);
}

static void init(struct worker *worker)
{
    list_init(&states[worker->index].links);
}

const struct lifecycle followers_lifecycle = {
    .worker_init = init,
    .worker_wake = serve_all,
    .worker_turn_end = on_turn_end,
};
