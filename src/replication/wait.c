#include "replication/wait.h"

#include "base/clock.h"
#include "base/mem.h"
#include "net/loop.h"
#include "replication/history.h"
#include "server/core/client.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/aof.h"
#include "server/durable/aof_hold.h"
#include "server/durable/aof_writer.h"

#include <stdatomic.h>

struct wait {
    struct list_node node;
    struct client *client;
    struct wait_wish wish;
    struct loop_timer timer;
};

/* Of a worker; its own thread's, where nothing else is said. */
static struct state {
    struct list waits;
    _Atomic unsigned wait_count; /* atomic: seq_cst; of that list: who brings news wakes those that wait */
    _Atomic bool has_news;       /* atomic: seq_cst */
} CACHE_ALIGNED states[WORKERS_MOST + 1];

static struct state *of(const struct worker *worker)
{
    return &states[worker->index];
}

/* ------------------------------------------------------------------------------------------------------ looking -- */

struct wait_state wait_look(uint64_t offset, enum replicas_proof proof)
{
    /* Without any write there is nothing that a replica could lack. */
    return (struct wait_state){.replica_count = replicas_have(offset != 0 ? history_of_journal(offset) : 0, proof),
                               .is_in_file = aof_state() == AOF_ON && aof_synced_offset() >= offset};
}

static struct wait_state look(const struct wait_wish *wish)
{
    return wish->look != NULL ? wish->look(wish->stamp) : wait_look(wish->offset, wish->proof);
}

static bool is_true(const struct wait_wish *wish, const struct wait_state *state)
{
    if (wish->look != NULL)
        return state->lacking_count == 0;
    return (int64_t)state->replica_count >= wish->replica_count && (state->is_in_file || !wish->wants_file);
}

/* ------------------------------------------------------------------------------------------------------- ending -- */

static struct wait *find(const struct client *client)
{
    LIST_FOREACH(node, &of(client->worker)->waits) {
        struct wait *wait = container_of(node, struct wait, node);

        if (wait->client == client)
            return wait;
    }
    return NULL;
}

static void forget(struct wait *wait)
{
    struct worker *worker = wait->client->worker;

    client_assert_owned(wait->client);
    loop_timer_stop(worker->loop, &wait->timer);
    list_remove(&wait->node);
    atomic_fetch_sub(&of(worker)->wait_count, 1);
    mem_free(wait);
}

static void answer(struct wait *wait)
{
    struct client *client = wait->client;
    const struct wait_wish wish = wait->wish;
    const struct wait_state state = look(&wish);

    forget(wait);
    wish.reply(client, &state);
    client_unblock(client);
}

static void on_timeout(struct loop *loop, struct loop_timer *timer)
{
    struct wait *wait = container_of(timer, struct wait, timer);

    (void)loop;
    if (client_end_wait(wait->client, wait->client->wait_count)) /* else somebody is about to end it */
        answer(wait);
}

static void on_unblock(struct client *client, const char *error)
{
    struct wait *wait = find(client);

    assert(wait != NULL);
    if (error == NULL) {
        answer(wait);
        return;
    }
    forget(wait);
    worker_count_error(client->worker, slice_from_text(error));
    resp_write_error_text(&client->conn.output, error);
    client_unblock(client);
}

static void withdraw(struct client *client)
{
    struct wait *wait = list_is_empty(&of(client->worker)->waits) ? NULL : find(client);

    if (wait != NULL)
        forget(wait);
}

/* ------------------------------------------------------------------------------------------------------ waiting -- */

void wait_begin(struct client *client, const struct wait_wish *wish)
{
    struct worker *worker = client->worker;
    struct wait *wait = mem_alloc_zero(sizeof(*wait));

    client_assert_owned(client);
    assert(wish->reply != NULL && find(client) == NULL);
    wait->client = client;
    wait->wish = *wish;
    list_push_back(&of(worker)->waits, &wait->node);
    atomic_fetch_add(&of(worker)->wait_count, 1);
    atomic_store(&of(worker)->has_news, true); /* what came between the first look and this */
    worker_at_turn_end(worker);
    client_block(client, on_unblock);
    if (wish->timeout_ms != 0) {
        const int64_t late_us = (int64_t)clock_monotonic_us() - loop_now_us(worker->loop);

        loop_timer_start(worker->loop, &wait->timer, MIN(wish->timeout_ms, INT64_MAX / 2000) * 1000 + MAX(late_us, 0),
                         on_timeout);
    }
    if (wish->replica_count > 0)
        replicas_ask_offsets(worker);
    if (wish->wants_file)
        aof_hold_ask(worker, wish->offset);
}

static void demote(struct wait *wait)
{
    struct client *client = wait->client;

    on_unblock(client, role_unblock_error);
    conn_close_after_flush(&client->conn);
}

/* The writer of the file wakes a worker for one offset, the lowest. */
static void ask_for_file(struct worker *worker)
{
    LIST_FOREACH(node, &of(worker)->waits) {
        const struct wait *wait = container_of(node, struct wait, node);

        if (wait->wish.wants_file && aof_state() == AOF_ON && aof_synced_offset() < wait->wish.offset)
            aof_hold_ask(worker, wait->wish.offset);
    }
}

static void serve(struct worker *worker)
{
    LIST_FOREACH_SAFE(node, &of(worker)->waits) {
        struct wait *wait = container_of(node, struct wait, node);
        const struct wait_state state = look(&wait->wish);

        if (role_follows()) {
            if (client_end_wait(wait->client, wait->client->wait_count))
                demote(wait);
        } else if ((is_true(&wait->wish, &state) || (wait->wish.wants_file && aof_state() == AOF_OFF)) &&
                   client_end_wait(wait->client, wait->client->wait_count)) {
            answer(wait);
        }
    }
    ask_for_file(worker);
}

/* At the end of each turn while a client waits: that of the writer's wake is one, too. */
static void turn_end(struct worker *worker)
{
    if (LIKELY(list_is_empty(&of(worker)->waits)))
        return;
    atomic_store(&of(worker)->has_news, false);
    serve(worker);
    if (!list_is_empty(&of(worker)->waits))
        worker_at_turn_end(worker); /* of the next turn */
}

void wait_look_again(void)
{
    const struct server *server = server_instance();

    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker *worker = &server->workers[i];

        if (atomic_load(&of(worker)->wait_count) != 0 && !atomic_exchange(&of(worker)->has_news, true))
            worker_wake(worker);
    }
}

static void init(struct worker *worker)
{
    list_init(&of(worker)->waits);
    atomic_init(&of(worker)->wait_count, 0);
    atomic_init(&of(worker)->has_news, false);
}

const struct lifecycle wait_lifecycle = {
    .worker_init = init,
    .worker_turn_end = turn_end,
    .client_withdraw = withdraw,
};
