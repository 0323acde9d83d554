#include "server/core/deliveries.h"

#include "server/core/client.h"
#include "server/core/server.h"

/* Room for deliveries again: workers that wait for it look when half of them are delivered. */
static void note_delivered(struct worker *worker, uint64_t bytes)
{
    uint64_t before = atomic_fetch_sub(&worker->backlog_bytes, bytes);

    assert(before >= bytes);
    worker->turn_mail_bytes += bytes;
    output_pool_add_transient(loop_output_pool(worker->loop), bytes); /* outputs may refer to its contents */
    if (before >= DELIVERIES_BACKLOG_BYTES / 2 && before - bytes < DELIVERIES_BACKLOG_BYTES / 2) {
        for (uint64_t left = atomic_exchange(&worker->waiting_workers, 0); left != 0; left &= left - 1)
            worker_wake(&worker->server->workers[__builtin_ctzll(left)]);
    }
}

static void deliver(struct worker *worker, struct mail *mail)
{
    struct delivery *delivery = container_of(mail, struct delivery, mail);
    uint64_t bytes = delivery->cost_bytes;

    assert(bytes >= DELIVERY_BYTES);
    delivery->deliver(worker, delivery);
    note_delivered(worker, bytes);
}

void deliveries_wake_later(struct worker *worker, struct worker *receiver)
{
    worker_assert_self(worker);
    worker->mailed |= UINT64_C(1) << receiver->index;
    worker->has_deferred = true;
}

void deliveries_call_later(struct worker *worker, struct worker *receiver)
{
    worker_assert_self(worker);
    if (receiver == worker)
        worker_wake(worker); /* it is awake: no system call */
    else
        deliveries_wake_later(worker, receiver);
}

void deliveries_post_mail(struct worker *worker, struct worker *receiver, struct mail *mail)
{
    worker_assert_self(worker);
    worker_post_quietly(receiver, mail);
    deliveries_wake_later(worker, receiver);
}

void delivery_post(struct worker *worker, struct worker *receiver, struct delivery *delivery, uint64_t contents_bytes)
{
    worker_assert_self(worker);
    assert(delivery->deliver != NULL);
    delivery->mail.deliver = deliver;
    delivery->cost_bytes = contents_bytes + DELIVERY_BYTES;
    if (atomic_fetch_add(&receiver->backlog_bytes, delivery->cost_bytes) > DELIVERIES_BACKLOG_BYTES &&
        receiver != worker)
        worker->slow_workers |= UINT64_C(1) << receiver->index;
    deliveries_post_mail(worker, receiver, &delivery->mail);
}

void deliveries_flush(struct worker *worker)
{
    /* The loader's worker has no bit: nobody posts to it. */
    const uint64_t self = worker->index < WORKERS_MOST ? UINT64_C(1) << worker->index : 0;

    worker_assert_outside(worker);
    for (uint64_t left = worker->mailed & ~self; left != 0; left &= left - 1)
        worker_wake(&worker->server->workers[__builtin_ctzll(left)]);
    worker->mailed &= self;
}

/* Returns the workers that are still far behind; they wake this worker when they have caught up. Both sides write
 * before they read what the other has written, hence the sequentially consistent operations here and in deliver. */
static uint64_t still_slow(struct worker *worker)
{
    uint64_t slow = worker->slow_workers;

    for (uint64_t left = slow; left != 0; left &= left - 1) {
        struct worker *other = &worker->server->workers[__builtin_ctzll(left)];

        atomic_fetch_or(&other->waiting_workers, UINT64_C(1) << worker->index);
        if (atomic_load(&other->backlog_bytes) < DELIVERIES_BACKLOG_BYTES / 2)
            slow &= ~(UINT64_C(1) << other->index);
    }
    worker->slow_workers = slow;
    return slow;
}

void deliveries_hold(struct client *client)
{
    struct worker *worker = client->worker;

    client_assert_owned(client);
    if (LIKELY(worker->slow_workers == 0) || client->parked != NULL || (client->flags & CLIENT_BLOCKED) != 0 ||
        conn_is_closing(&client->conn) || still_slow(worker) == 0)
        return;
    client_block(client, NULL);
    list_push_back(&worker->held, &client->held_node);
}

void deliveries_release_held(struct worker *worker)
{
    struct list_node *node;

    worker_assert_outside(worker);
    if (LIKELY(list_is_empty(&worker->held)) || still_slow(worker) != 0)
        return;
    while ((node = list_pop_front(&worker->held)) != NULL) {
        struct client *client = container_of(node, struct client, held_node);

        if (client_end_wait(client, client->wait_count) && !conn_is_closing(&client->conn))
            client_unblock(client);
    }
}

void deliveries_leave(struct client *client)
{
    client_assert_owned(client);
    if (list_node_is_linked(&client->held_node))
        list_remove(&client->held_node);
}
