#include "server/run/parking.h"

#include "base/assert.h"
#include "base/mem.h"
#include "server/command/owned_args.h"
#include "server/core/client.h"
#include "server/core/exclusive.h"
#include "server/core/deliveries.h"
#include "server/core/lifecycle.h"
#include "server/core/server.h"
#include "server/core/stats_info.h"
#include "server/run/busy.h"
#include "server/run/dispatch.h"
#include "server/run/dispatch_priv.h"
#include "server/run/pause.h"
#include "server/run/command_check.h"

enum {
    MANY_STRIPES = 16, /* up to here a command gets on by itself: most of them need one */
    TRIES_MOST = 3     /* to have more than that at once */
};

/* A command that waits, with its own copy of the words. */
struct parked {
    struct list_node node; /* in the list of commands that wait for the same */
    struct list *place;    /* the list that it is in */
    uint64_t number;       /* order of arrival */
    struct client *client;
    struct job job;
    struct owned_args words;
    uint32_t checked_changes; /* command_block_changes when it was checked */
    bool asked;               /* its last try was RUN_ASKED: in the list of the gate */
    unsigned tries;           /* in which it did not get all of its stripes */
};

/* The commands that wait for one stripe. While there are some, the worker's bit is in the stripe's wait mask, or it was
 * removed and the news is on its way. */
struct parked_queue {
    struct list commands;
    struct list_node node; /* parking's queues, if it is not empty */
    struct stripe *stripe;
};

static void init(struct worker *worker)
{
    struct parking *parking = &worker->parking;

    *parking = (struct parking){.by_stripe = NULL};
    list_init(&parking->gate);
    list_init(&parking->paused);
    list_init(&parking->queues);
}

static void fini(struct worker *worker)
{
    struct parking *parking = &worker->parking;

    assert(list_is_empty(&parking->gate) && list_is_empty(&parking->paused) && list_is_empty(&parking->queues));
    mem_free(parking->by_stripe);
    parking->by_stripe = NULL;
}

/* ------------------------------------------------------------------------------------------------------- places -- */

/* The last one is the scripts' turn. */
static uint32_t index_of(const struct server *server, const struct stripe *stripe)
{
    return stripe == &server->script_turn.alone ? server->store->stripe_mask + 1 : stripe->index;
}

static struct list *queue_of(struct worker *worker, struct stripe *stripe)
{
    struct parking *parking = &worker->parking;
    struct parked_queue *queue;

    if (parking->by_stripe == NULL) {
        uint32_t count = worker->server->store->stripe_mask + 2;

        parking->by_stripe = mem_alloc(count * sizeof(struct parked_queue));
        for (uint32_t i = 0; i < count; i++) {
            list_init(&parking->by_stripe[i].commands);
            list_node_init(&parking->by_stripe[i].node);
        }
    }
    queue = &parking->by_stripe[index_of(worker->server, stripe)];
    queue->stripe = stripe;
    if (!list_node_is_linked(&queue->node))
        list_push_back(&parking->queues, &queue->node);
    return &queue->commands;
}

static struct list *place_for(struct worker *worker, enum run_result why)
{
    switch (why) {
    case RUN_BUSY:
        assert(worker->busy_stripe != NULL);
        return queue_of(worker, worker->busy_stripe);
    case RUN_PAUSED:
        return &worker->parking.paused;
    case RUN_CLOSED:
    case RUN_ASKED:
    case RUN_DONE:
    case RUN_UNCHECKED:
        break;
    }
    return &worker->parking.gate;
}

/* Inserts behind all earlier commands. A command from another list is among the last in most cases. */
static void put(struct parked *parked, struct list *place)
{
    struct list_node *before = place->head.before;

    while (before != &place->head && container_of(before, struct parked, node)->number > parked->number)
        before = before->before;
    list_insert_after(before, &parked->node);
    parked->place = place;
}

/* A client whose command CLIENT PAUSE holds counts as blocked. */
static void show_pause(struct client *client, bool paused)
{
    client->flags = paused ? client->flags | CLIENT_PAUSED : client->flags & ~(uint32_t)CLIENT_PAUSED;
}

static void set_asked(struct worker *worker, struct parked *parked, bool asked)
{
    assert(!parked->asked || worker->parking.asked_count != 0);
    worker->parking.asked_count += (unsigned)asked - (unsigned)parked->asked;
    parked->asked = asked;
}

/* Whether the command might try forever. With many stripes one of them may be held at any time, for example by a script
 * that is run repeatedly. A script that has to be alone may meet others each time, of several workers. */
static bool may_never_get(const struct worker *worker, const struct parked *parked)
{
    const enum access_class class = parked->job.access;

    if (class != ACCESS_STRIPED && class != ACCESS_TRANSACTION)
        return false;
    if (worker->busy_stripe == &worker->server->script_turn.alone)
        return worker->is_outnumbered;
    return worker->run.stripes.count > MANY_STRIPES;
}

/* The gate has a queue. The command asks for it when what was busy is released; at worst the next script is inside by
 * then, and all wait for its end. Spinning for each stripe, with the lower ones held, bounds nothing: a script may hold
 * a stripe for longer than others can wait for these. */
static void count_try(struct parked *parked, enum run_result result)
{
    struct worker *worker = parked->client->worker;

    if (result != RUN_BUSY || !may_never_get(worker, parked))
        return;
    if (++parked->tries > atomic_load_explicit(&worker->stats.parked_tries_most, memory_order_relaxed))
        atomic_store_explicit(&worker->stats.parked_tries_most, parked->tries, memory_order_relaxed);
    if (parked->tries != TRIES_MOST)
        return;
    parked->job.by_gate = true;
    counter_add(&worker->stats.parked_by_gate, 1);
}

void parking_add(struct client *client, struct job *job, const struct key *keys, enum run_result why)
{
    struct worker *worker = client->worker;
    struct parked *parked = mem_alloc(sizeof(*parked));

    client_assert_owned(client);
    assert(client->parked == NULL && (client->flags & CLIENT_BLOCKED) == 0);
    assert(why != RUN_DONE && why != RUN_UNCHECKED);
    list_node_init(&parked->node);
    parked->client = client;
    parked->number = worker->parking.next_number++;
    parked->checked_changes = worker->checked_changes;
    parked->asked = false;
    parked->tries = 0;
    set_asked(worker, parked, why == RUN_ASKED);
    owned_args_make(&parked->words, job->words.args, job->words.arg_count, job->words.blobs, job->words.blob_count,
                    keys, job->key_count);
    parked->job = *job;
    parked->job.words.args = parked->words.args;
    parked->job.words.blobs = parked->words.blobs;
    parked->job.words.blob_count = parked->words.blob_count;
    parked->job.words.is_plain = false;
    parked->job.first_key = 0;
    count_try(parked, why);
    client->parked = parked;
    put(parked, place_for(worker, why));
    show_pause(client, why == RUN_PAUSED);
    atomic_store_explicit(&client->card.command_id, job->command->id, memory_order_relaxed);
    counter_add(&worker->stats.lock_waits, why != RUN_PAUSED);
    counter_add(&worker->stats.waiting_commands, 1);
    conn_pause(&client->conn);
}

static void parked_destroy(struct parked *parked)
{
    struct worker *worker = parked->client->worker;

    assert(parked->client->parked == parked);
    set_asked(worker, parked, false);
    list_remove(&parked->node);
    parked->client->parked = NULL;
    counter_add(&worker->stats.waiting_commands, UINT64_MAX); /* one less */
    owned_args_fini(&parked->words);
    mem_free(parked);
}

static void drop_empty_queues(struct parking *parking)
{
    LIST_FOREACH_SAFE(node, &parking->queues) {
        if (list_is_empty(&container_of(node, struct parked_queue, node)->commands))
            list_remove(node);
    }
}

static void forget(struct client *client)
{
    struct worker *worker = client->worker;
    const struct list *place;

    if (client->parked == NULL)
        return;
    place = client->parked->place;
    parked_destroy(client->parked);
    if (list_is_empty(place))
        drop_empty_queues(&worker->parking);
    exclusive_stop_asking(worker);
}

/* ------------------------------------------------------------------------------------------------------- trying -- */

/* It is answered, or queued: its connection continues. */
static void go_on(struct parked *parked)
{
    struct client *client = parked->client;

    parked_destroy(parked);
    client_update_card(client);
    conn_write_pending(&client->conn);
    if ((client->flags & CLIENT_BLOCKED) == 0) /* it may wait for something else now */
        conn_resume(&client->conn);
    deliveries_hold(client);
}

static bool is_paused(const struct parked *parked)
{
    const struct resp_command *words = &parked->job.words;

    return pause_is_on() && pause_holds(parked->client, parked->job.command, words->args, words->arg_count);
}

/* A try of a command whose check holds, unless something changes just now. */
static enum run_result run_checked(struct parked *parked)
{
    struct client *client = parked->client;
    enum run_result result;

    client->worker->checked_changes = parked->checked_changes;
    /* Commands in the queue for the gate have passed the check before, and only their turn opens the gate again. But a
     * pause that has begun meanwhile holds them, too. */
    if (parked->asked)
        return is_paused(parked) ? RUN_PAUSED : dispatch_run_alone(client, &parked->job, parked->words.keys);
    if (command_check_refuses_meanwhile(client, &parked->job))
        return RUN_DONE;
    result = dispatch_run_now(client, &parked->job, parked->words.keys);
    count_try(parked, result);
    return result;
}

static enum run_result run(struct parked *parked)
{
    struct client *client = parked->client;
    enum run_result result;

    assert((client->flags & CLIENT_BLOCKED) == 0);
    counter_add(&client->worker->stats.parked_retries, 1);
    do {
        if (UNLIKELY(parked->checked_changes != command_block_changes())) {
            dispatch_begin_check(client->worker);
            parked->checked_changes = client->worker->checked_changes;
            if (command_check_refuses(client, &parked->job))
                return RUN_DONE;
        }
        result = run_checked(parked);
    } while (UNLIKELY(result == RUN_UNCHECKED));
    return result;
}

/* Acts on the result of a try. */
static void settle(struct parked *parked, enum run_result result)
{
    struct client *client = parked->client;
    struct list *place;

    set_asked(client->worker, parked, result == RUN_ASKED);
    show_pause(client, result == RUN_PAUSED);
    if (result == RUN_DONE || (result != RUN_PAUSED && command_check_refuses_busy(client, &parked->job))) {
        go_on(parked);
        return;
    }
    place = place_for(client->worker, result);
    if (place != parked->place) {
        list_remove(&parked->node);
        put(parked, place);
    }
}

static bool may_try(const struct parked *parked)
{
    return !conn_is_closing(&parked->client->conn); /* else it is forgotten soon */
}

/* Once one has found the gate closed, or has asked in vain, so would all others of its kind. */
static void retry_gate(struct worker *worker)
{
    bool closed = false, asked = false;

    LIST_FOREACH_SAFE(node, &worker->parking.gate) {
        struct parked *parked = container_of(node, struct parked, node);
        enum run_result result;

        if (!may_try(parked))
            continue;
        if (parked->asked && asked)
            result = RUN_ASKED;
        else if (!parked->asked && closed)
            result = RUN_CLOSED;
        else
            result = run(parked);
        closed = closed || result == RUN_CLOSED;
        asked = asked || result == RUN_ASKED;
        settle(parked, result);
    }
}

static void retry_paused(struct worker *worker)
{
    LIST_FOREACH_SAFE(node, &worker->parking.paused) {
        struct parked *parked = container_of(node, struct parked, node);

        if (may_try(parked))
            settle(parked, run(parked));
    }
}

static bool is_held(const struct worker *worker, const struct parked_queue *queue)
{
    return stripe_has_waiter(queue->stripe, worker->index);
}

/* Until the first that finds the stripe held, again or still: those behind it wait with it. */
static void retry_queue(struct worker *worker, struct parked_queue *queue)
{
    bool held = is_held(worker, queue);

    LIST_FOREACH_SAFE(node, &queue->commands) {
        struct parked *parked = container_of(node, struct parked, node);
        enum run_result result = RUN_BUSY;

        if (!may_try(parked))
            continue;
        if (!held) {
            result = run(parked);
            held = result == RUN_BUSY && worker->busy_stripe == queue->stripe;
        }
        if (held)
            worker->busy_stripe = queue->stripe;
        if (held && !busy_is_on())
            break;
        settle(parked, result);
    }
}

static void retry(struct worker *worker)
{
    struct parking *parking = &worker->parking;
    uint32_t news = 0;

    worker_assert_outside(worker);
    if (atomic_load_explicit(&worker->parking_news, memory_order_relaxed) != 0)
        news = atomic_exchange_explicit(&worker->parking_news, 0, memory_order_acquire);
    if ((news & (PARKING_GATE | PARKING_BUSY)) != 0) {
        /* Somebody may count on this worker's turn inside (gate.h, invariant 3), even if who wanted it has gone. */
        if (gate_enter(&worker->member))
            gate_leave(&worker->member);
        retry_gate(worker);
    }
    if ((news & PARKING_PAUSE) != 0)
        retry_paused(worker);
    if ((news & (PARKING_STRIPE | PARKING_BUSY)) != 0) {
        LIST_FOREACH_SAFE(node, &parking->queues) {
            struct parked_queue *queue = container_of(node, struct parked_queue, node);

            if ((news & PARKING_BUSY) != 0 || !is_held(worker, queue))
                retry_queue(worker, queue);
        }
        drop_empty_queues(parking);
    }
    exclusive_stop_asking(worker); /* the commands that did may have been refused, or need something else now */
    worker_run_deferred(worker);
}

const struct lifecycle parking_lifecycle = {
    .worker_init = init,
    .worker_fini = fini,
    .worker_wake = retry,
    .client_close = forget,
};

static void append_average_waiting(struct buffer *buffer, const void *picture)
{
    buffer_printf(buffer, "%f", ((const struct server_stats *)picture)->average_waiting_commands);
}

const struct info_row parking_info[] = {
    INFO_STAT("long_lock_waits", lock_waits, INFO_SAFE),
    INFO_STAT("parked_retries", parked_retries),
    INFO_STAT("parked_by_gate", parked_by_gate),
    INFO_STAT("parked_tries_most", parked_tries_most),
    INFO_STAT("instantaneous_lock_contention", waiting_commands, INFO_SAFE),
    INFO_VALUE("avg_lock_contention", &server_stats_source, append_average_waiting),
    {0},
};
