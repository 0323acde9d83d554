#include "server/run/rendezvous.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "server/acl/acl_client.h"
#include "server/core/client.h"
#include "server/core/deliveries.h"
#include "server/core/lifecycle.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/durable/aof_hold.h"

struct rendezvous;

/* One worker is asked to pass. In its `calls` or in its mailbox, then perhaps on its list of late calls. */
struct call {
    struct mail mail;
    struct list_node late_node;
    struct rendezvous *rendezvous;
};

struct rendezvous {
    struct mail done;          /* to the worker of the waiting client */
    enum rendezvous_kind kind; /* const, as all but `left` */
    struct worker *worker;
    uint64_t client_id;
    uint64_t start_us;     /* monotonic */
    _Atomic uint32_t left; /* atomic, acq_rel: workers that have not passed */
    struct call calls[];
};

/* A worker's; its own thread's. */
static struct state {
    struct mpsc calls; /* any thread pushes */
    struct list late;  /* those of them that wait for the end of a script */
} CACHE_ALIGNED states[WORKERS_MOST + 1];

static struct state *of(const struct worker *worker)
{
    return &states[worker->index];
}

/* atomic, relaxed: statistics */
static _Atomic uint64_t count, last_us, most_us;

static void note_time(const struct rendezvous *rendezvous)
{
    uint64_t took_us = clock_monotonic_us() - rendezvous->start_us;
    uint64_t most = atomic_load_explicit(&most_us, memory_order_relaxed);

    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    atomic_store_explicit(&last_us, took_us, memory_order_relaxed);
    while (most < took_us &&
           !atomic_compare_exchange_weak_explicit(&most_us, &most, took_us, memory_order_relaxed, memory_order_relaxed))
        ;
}

void rendezvous_stats(struct rendezvous_stats *stats)
{
    stats->count = atomic_load_explicit(&count, memory_order_relaxed);
    stats->last_us = atomic_load_explicit(&last_us, memory_order_relaxed);
    stats->most_us = atomic_load_explicit(&most_us, memory_order_relaxed);
}

/* NULL: it has left. One that is to be closed after its reply still has to get it. */
static struct client *find_client(const struct worker *worker, uint64_t id)
{
    LIST_FOREACH(node, &worker->clients) {
        struct client *client = container_of(node, struct client, node);

        if (client->id == id)
            return (client->conn.flags & CONN_CLOSING) == 0 ? client : NULL;
    }
    return NULL;
}

/* All have passed: sends the reply, and unblocks the client. */
static void deliver_done(struct worker *worker, struct mail *mail)
{
    struct rendezvous *rendezvous = container_of(mail, struct rendezvous, done);
    struct client *client = find_client(worker, rendezvous->client_id);

    assert(worker == rendezvous->worker);
    note_time(rendezvous);
    mem_free(rendezvous);
    if (client == NULL)
        return;
    assert(client->rendezvous_count != 0);
    if (--client->rendezvous_count != 0)
        return;
    aof_hold_unfence(client);
    client_unblock(client);
}

static void pass(struct call *call)
{
    struct rendezvous *rendezvous = call->rendezvous;
    struct mail *mail = &rendezvous->done;
    const uint32_t left = atomic_fetch_sub_explicit(&rendezvous->left, 1, memory_order_acq_rel);

    assert(left != 0);
    if (left != 1)
        return;
    if (atomic_load_explicit(&rendezvous->worker->server->stopping, memory_order_relaxed))
        mem_free(rendezvous); /* replies are sent no more, and that worker may have ended */
    else
        worker_post(rendezvous->worker, &mail);
}

static bool runs_for_killed(const struct worker *worker)
{
    return worker->run.running != NULL && conn_is_closing(&worker->run.running->client->conn);
}

static void deliver_call(struct worker *worker, struct mail *mail)
{
    struct call *call = container_of(mail, struct call, mail);
    bool is_late;

    if (call->rendezvous->kind == RENDEZVOUS_REQUESTS) {
        worker_serve_requests(worker);
        is_late = worker->reentrant && runs_for_killed(worker);
    } else {
        is_late = worker->reentrant;
        acl_refresh(worker);
    }
    if (!is_late) {
        pass(call);
        return;
    }
    list_push_back(&of(worker)->late, &call->late_node);
    worker_at_turn_end(worker);
}

void rendezvous_serve(struct worker *worker)
{
    struct mpsc_node *node;

    worker_assert_self(worker);
    while ((node = mpsc_pop(&of(worker)->calls)) != NULL)
        deliver_call(worker, container_of(node, struct mail, node));
}

static void turn_end(struct worker *worker)
{
    struct list_node *node;

    assert(!worker->reentrant);
    while ((node = list_pop_front(&of(worker)->late)) != NULL)
        pass(container_of(node, struct call, late_node));
}

static void fini(struct worker *worker)
{
    rendezvous_serve(worker);
    turn_end(worker);
}

void rendezvous_begin(struct client *client, uint64_t workers, enum rendezvous_kind kind)
{
    struct worker *worker = client->worker;
    struct server *server = worker->server;
    struct rendezvous *rendezvous;
    uint32_t asked = 0;

    worker_assert_self(worker);
    if (server->worker_count < WORKERS_MOST)
        workers &= (UINT64_C(1) << server->worker_count) - 1;
    workers &= ~(UINT64_C(1) << worker->index);
    if (workers == 0)
        return;
    rendezvous = mem_alloc_zero(sizeof(*rendezvous) + (size_t)__builtin_popcountll(workers) * sizeof(struct call));
    rendezvous->done.deliver = deliver_done;
    rendezvous->kind = kind;
    rendezvous->worker = worker;
    rendezvous->client_id = client->id;
    rendezvous->start_us = clock_monotonic_us();
    atomic_init(&rendezvous->left, (uint32_t)__builtin_popcountll(workers));
    assert(client->rendezvous_count == 0 || (client->flags & CLIENT_BLOCKED) != 0);
    if (client->rendezvous_count++ == 0) {
        aof_hold_fence(client);
        client_block(client, NULL);
    }
    for (; workers != 0; workers &= workers - 1, asked++) {
        struct worker *other = &server->workers[__builtin_ctzll(workers)];
        struct call *call = &rendezvous->calls[asked];
        struct mail *mail = &call->mail;

        call->rendezvous = rendezvous;
        list_node_init(&call->late_node);
        mail->deliver = deliver_call;
        if (kind == RENDEZVOUS_COMMANDS) {
            deliveries_post_mail(worker, other, mail);
        } else {
            mpsc_push(&of(other)->calls, &mail->node);
            deliveries_wake_later(worker, other);
        }
    }
}

static void init(struct worker *worker)
{
    mpsc_init(&of(worker)->calls);
    list_init(&of(worker)->late);
}

const struct lifecycle rendezvous_lifecycle = {
    .worker_init = init,
    .worker_fini = fini,
    .worker_wake = rendezvous_serve,
    .worker_turn_end = turn_end,
};

static void take(void *picture, const struct info_moment *moment)
{
    (void)moment;
    rendezvous_stats(picture);
}

static const struct info_source source = {sizeof(struct rendezvous_stats), .take = take};

#define FIELD(name, member) INFO_FIELD(name, &source, struct rendezvous_stats, member)

const struct info_row rendezvous_info[] = {
    FIELD("rendezvous_count", count),
    FIELD("rendezvous_last_usec", last_us),
    FIELD("rendezvous_max_usec", most_us),
    {0},
};
