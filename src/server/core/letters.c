#include "server/core/letters.h"

#include "server/core/client.h"
#include "server/core/server.h"

/* Room for letters again: those that wait for it look when half of them are delivered. */
static void note_delivered(struct worker *worker, uint64_t bytes)
{
    uint64_t before = atomic_fetch_sub(&worker->backlog_bytes, bytes);

    worker->turn_mail_bytes += bytes;
    output_pool_add_transient(loop_output_pool(worker->loop), bytes); /* outputs may refer to what was in it */
    if (before >= LETTERS_BACKLOG_BYTES / 2 && before - bytes < LETTERS_BACKLOG_BYTES / 2) {
        for (uint64_t left = atomic_exchange(&worker->waiting_workers, 0); left != 0; left &= left - 1)
            worker_wake(&worker->server->workers[__builtin_ctzll(left)]);
    }
}

static void deliver(struct worker *worker, struct mail *mail)
{
    struct letter *letter = container_of(mail, struct letter, mail);
    uint64_t bytes = letter->cost_bytes;

    letter->deliver(worker, letter);
    note_delivered(worker, bytes);
}

void letters_wake_later(struct worker *worker, struct worker *receiver)
{
    worker->mailed |= UINT64_C(1) << receiver->index;
    worker->has_deferred = true;
}

void letters_call_later(struct worker *worker, struct worker *receiver)
{
    if (receiver == worker)
        worker_wake(worker); /* it is awake: no system call */
    else
        letters_wake_later(worker, receiver);
}

void letters_post_mail(struct worker *worker, struct worker *receiver, struct mail *mail)
{
    worker_post_quietly(receiver, mail);
    letters_wake_later(worker, receiver);
}

void letter_post(struct worker *worker, struct worker *receiver, struct letter *letter, uint64_t contents_bytes)
{
    letter->mail.deliver = deliver;
    letter->cost_bytes = contents_bytes + LETTER_BYTES;
    if (atomic_fetch_add(&receiver->backlog_bytes, letter->cost_bytes) > LETTERS_BACKLOG_BYTES && receiver != worker)
        worker->slow_workers |= UINT64_C(1) << receiver->index;
    letters_post_mail(worker, receiver, &letter->mail);
}

void letters_flush(struct worker *worker)
{
    const uint64_t self = UINT64_C(1) << worker->index;

    for (uint64_t left = worker->mailed & ~self; left != 0; left &= left - 1)
        worker_wake(&worker->server->workers[__builtin_ctzll(left)]);
    worker->mailed &= self;
}

/* Of the workers that were far behind, those that still are; they wake us when they are not. Both sides write before
 * they read what the other has written, hence the sequentially consistent operations here and in deliver. */
static uint64_t still_slow(struct worker *worker)
{
    uint64_t slow = worker->slow_workers;

    for (uint64_t left = slow; left != 0; left &= left - 1) {
        struct worker *other = &worker->server->workers[__builtin_ctzll(left)];

        atomic_fetch_or(&other->waiting_workers, UINT64_C(1) << worker->index);
        if (atomic_load(&other->backlog_bytes) < LETTERS_BACKLOG_BYTES / 2)
            slow &= ~(UINT64_C(1) << other->index);
    }
    worker->slow_workers = slow;
    return slow;
}

void letters_hold(struct client *client)
{
    struct worker *worker = client->worker;

    if (LIKELY(worker->slow_workers == 0) || client->parked != NULL || (client->flags & CLIENT_BLOCKED) != 0 ||
        conn_is_closing(&client->conn) || still_slow(worker) == 0)
        return;
    client_block(client, NULL);
    list_push_back(&worker->held, &client->held_node);
}

void letters_release_held(struct worker *worker)
{
    struct list_node *node;

    if (LIKELY(list_is_empty(&worker->held)) || still_slow(worker) != 0)
        return;
    while ((node = list_pop_front(&worker->held)) != NULL) {
        struct client *client = container_of(node, struct client, held_node);

        if (client_end_wait(client, client->wait_count) && !conn_is_closing(&client->conn))
            client_unblock(client);
    }
}

void letters_leave(struct client *client)
{
    if (list_node_is_linked(&client->held_node))
        list_remove(&client->held_node);
}
