#include "server/run/placement.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/tls.h"
#include "server/config/options.h"
#include "server/core/client.h"
#include "server/core/lifecycle.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/tls/certificates.h"

#include <unistd.h>

/* Turns under load take some milliseconds at most. */
enum { HELD_UP_US = 10 * 1000, LOOK_AGAIN_US = 5 * 1000 };

/* Of a worker; its own thread's, except the atomics. */
static struct state {
    struct list sent; /* of struct handover: on their way to others */
    struct loop_timer timer;
    _Atomic uint64_t assigned_count; /* atomic: connections assigned to it, by any accepting thread */
    _Atomic uint64_t closed_count;   /* atomic: the closed ones among these */
} CACHE_ALIGNED states[WORKERS_MOST + 1];

static struct state *of(const struct worker *worker)
{
    return &states[worker->index];
}

static _Atomic unsigned next_index; /* atomic, relaxed: whose turn it is while clients are not balanced */

static bool is_held_up(const struct worker *worker)
{
    return loop_serving_us(worker->loop) > HELD_UP_US;
}

static uint64_t client_count(const struct worker *worker)
{
    uint64_t count = atomic_load_explicit(&of(worker)->assigned_count, memory_order_relaxed);

    return count - MIN(count, atomic_load_explicit(&of(worker)->closed_count, memory_order_relaxed));
}

/* NULL: all are held up, and those were left out. */
static struct worker *choose_among(struct server *server, bool with_held_up)
{
    uint64_t enough = OPTION_GET_U64(option_min_clients_per_thread), fewest = UINT64_MAX;
    struct worker *best = NULL;

    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker *worker = &server->workers[i];
        uint64_t count = client_count(worker);

        if (!with_held_up && is_held_up(worker))
            continue;
        if (count < enough)
            return worker;
        if (count < fewest) {
            fewest = count;
            best = worker;
        }
    }
    return best;
}

static struct worker *choose_next(struct server *server)
{
    struct worker *next = &server->workers[0];

    for (unsigned i = 0; i < server->worker_count; i++) {
        next = &server->workers[atomic_fetch_add_explicit(&next_index, 1, memory_order_relaxed) % server->worker_count];
        if (!is_held_up(next))
            break;
    }
    return next;
}

static struct worker *choose(struct worker *worker)
{
    struct server *server = worker->server;
    struct worker *best;

    if (server->worker_count == 1)
        return worker;
    if (!OPTION_IS(option_active_client_balancing))
        return choose_next(server);
    best = choose_among(server, false);
    if (best == NULL)
        best = choose_among(server, true);
    assert(best != NULL); /* there are workers */
    return best;
}

/* A connection may still arrive in the last turn of a worker, which has closed its clients already. */
static bool refuse_if_stopped(struct worker *worker, int fd)
{
    if (!atomic_load_explicit(&worker->stop, memory_order_relaxed))
        return false;
    atomic_fetch_sub_explicit(&worker->server->client_count, 1, memory_order_relaxed);
    close(fd);
    return true;
}

static void open_here(struct worker *worker, int fd, enum listener_kind kind)
{
    struct tls_context *tls;

    if (refuse_if_stopped(worker, fd))
        return;
    tls = kind == LISTENER_TLS ? certificates_acquire() : NULL;
    atomic_fetch_add_explicit(&of(worker)->assigned_count, 1, memory_order_relaxed);
    if (!client_open(worker, fd, kind, tls)) {
        log_warning("Can't take over a connection");
        atomic_fetch_add_explicit(&of(worker)->closed_count, 1, memory_order_relaxed);
    }
    tls_context_release(&tls);
}

/* ------------------------------------------------------------------------------------------------ on the way -- */

/* A descriptor on its way to another worker. It is in the mailbox of that worker and in the list of the sender, until
 * both have seen it; the first one to claim it opens it. */
struct handover {
    struct mail mail;
    struct list_node sent_node; /* owner: the sender */
    struct worker *receiver;    /* const, like fd and kind */
    int fd;
    enum listener_kind kind;
    _Atomic bool is_claimed; /* atomic, acq_rel */
    _Atomic bool is_seen;    /* atomic, acq_rel: by one of the two; the other frees it */
};

static bool claim(struct handover *handover)
{
    if (atomic_exchange_explicit(&handover->is_claimed, true, memory_order_acq_rel))
        return false;
    /* While it was on its way it counted there. */
    atomic_fetch_add_explicit(&of(handover->receiver)->closed_count, 1, memory_order_relaxed);
    return true;
}

static void see(struct handover *handover)
{
    if (atomic_exchange_explicit(&handover->is_seen, true, memory_order_acq_rel))
        mem_free(handover);
}

static void deliver(struct worker *worker, struct mail *mail)
{
    struct handover *handover = container_of(mail, struct handover, mail);

    assert(worker == handover->receiver);
    if (claim(handover))
        open_here(worker, handover->fd, handover->kind);
    see(handover);
}

static void look_again(struct loop *loop, struct loop_timer *timer)
{
    struct worker *worker = loop_user(loop);
    struct list *sent = &of(worker)->sent;

    worker_assert_self(worker);
    LIST_FOREACH_SAFE(link, sent) {
        struct handover *handover = container_of(link, struct handover, sent_node);
        bool is_mine = is_held_up(handover->receiver) && claim(handover);

        if (!is_mine && !atomic_load_explicit(&handover->is_claimed, memory_order_acquire))
            continue; /* soon */
        list_remove(link);
        if (is_mine)
            open_here(worker, handover->fd, handover->kind);
        see(handover);
    }
    if (!list_is_empty(sent))
        loop_timer_start(loop, timer, LOOK_AGAIN_US, look_again);
}

static void send_to(struct worker *receiver, struct worker *worker, int fd, enum listener_kind kind)
{
    struct state *mine = of(worker);
    struct handover *handover = mem_alloc(sizeof(*handover));
    struct mail *mail = &handover->mail;

    *handover = (struct handover){.mail = {.deliver = deliver}, .receiver = receiver, .fd = fd, .kind = kind};
    atomic_fetch_add_explicit(&of(receiver)->assigned_count, 1, memory_order_relaxed);
    list_push_back(&mine->sent, &handover->sent_node);
    if (!loop_timer_is_running(&mine->timer))
        loop_timer_start(worker->loop, &mine->timer, LOOK_AGAIN_US, look_again);
    worker_post(receiver, &mail);
}

void placement_give(struct worker *worker, int fd, enum listener_kind kind)
{
    struct worker *receiver = choose(worker);

    worker_assert_self(worker);
    assert(fd >= 0);
    if (receiver == worker)
        open_here(worker, fd, kind);
    else
        send_to(receiver, worker, fd, kind);
}

static void init(struct worker *worker)
{
    struct state *mine = of(worker);

    mine->timer = (struct loop_timer){0};
    atomic_init(&mine->assigned_count, 0);
    atomic_init(&mine->closed_count, 0);
    list_init(&mine->sent);
}

static void fini(struct worker *worker)
{
    LIST_FOREACH_SAFE(link, &of(worker)->sent) {
        list_remove(link);
        see(container_of(link, struct handover, sent_node));
    }
}

static void count_closed(struct client *client)
{
    atomic_fetch_add_explicit(&of(client->worker)->closed_count, 1, memory_order_relaxed);
}

const struct lifecycle placement_lifecycle = {
    .client_close = count_closed,
    .worker_init = init,
    .worker_fini = fini,
};
