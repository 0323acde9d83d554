#include "server/upkeep/shutdown_wait.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "base/thread.h"
#include "server/core/client.h"
#include "server/core/exclusive.h"
#include "server/core/server.h"
#include "server/run/pause.h"
#include "server/upkeep/shutdown.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* A client that has sent SHUTDOWN. */
struct waiting {
    struct mail mail; /* takes the error to its worker */
    struct list_node node;
    struct worker *worker;
    uint64_t client_id, wait_count;
    int kept_fd; /* shutdown_keep_open */
};

static struct {
    const struct shutdown_wait *wait;     /* const after setup; NULL: there is nothing to wait for */
    struct spinlock lock;                 /* rank LOCK_REGISTRY */
    struct list clients GUARDED_BY(lock); /* of struct waiting */
    unsigned flags GUARDED_BY(lock);
    _Atomic bool is_on;     /* atomic: seq_cst; changed under the lock */
    _Atomic int64_t end_ms; /* atomic: relaxed; monotonic */
    _Atomic bool has_news;  /* atomic: for worker 0 */
} state = {.lock = {.rank = LOCK_REGISTRY}, .clients = {{&state.clients.head, &state.clients.head}}};

void shutdown_wait_provide(const struct shutdown_wait *wait)
{
    thread_assert_main();
    state.wait = wait;
}

bool shutdown_waits(void)
{
    return UNLIKELY(atomic_load(&state.is_on));
}

/* ------------------------------------------------------------------------------------------------------ clients -- */

static void deliver_error(struct worker *worker, struct mail *mail)
{
    struct waiting *waiting = container_of(mail, struct waiting, mail);
    struct client *client = worker_find_client(worker, waiting->client_id);

    if (client != NULL && client_end_wait(client, waiting->wait_count)) {
        resp_write_error_text(&client->conn.output, "ERR Errors trying to SHUTDOWN. Check logs.");
        client_unblock(client);
    }
    if (waiting->kept_fd >= 0)
        close(waiting->kept_fd);
    mem_free(waiting);
}

static void block(struct client *client)
{
    struct waiting *waiting = mem_alloc_zero(sizeof(*waiting));

    client_assert_owned(client);
    client_block(client, NULL);
    waiting->mail.deliver = deliver_error;
    waiting->worker = client->worker;
    waiting->client_id = client->id;
    waiting->wait_count = client->wait_count;
    waiting->kept_fd = shutdown_keep_open(client);
    spinlock_acquire(&state.lock);
    list_push_back(&state.clients, &waiting->node);
    spinlock_release(&state.lock);
}

/* ------------------------------------------------------------------------------------------------------ waiting -- */

bool shutdown_wait_begin(struct client *client, unsigned flags)
{
    const int64_t timeout_ms = state.wait != NULL ? state.wait->timeout_ms() : 0;
    bool begins;

    if (!shutdown_waits() && (timeout_ms == 0 || state.wait->is_over()))
        return false;
    spinlock_acquire(&state.lock);
    begins = !atomic_load(&state.is_on);
    state.flags = begins ? flags : state.flags;
    if (begins)
        atomic_store_explicit(&state.end_ms, (int64_t)clock_monotonic_ms() + timeout_ms, memory_order_relaxed);
    atomic_store(&state.is_on, true);
    spinlock_release(&state.lock);
    if (begins) {
        log_notice("Waiting for replicas before shutting down.");
        pause_for(PAUSE_FOR_SHUTDOWN, true);
    }
    if (client != NULL)
        block(client);
    return true;
}

bool shutdown_wait_abort(void)
{
    struct list clients;
    bool was_on;

    list_init(&clients);
    spinlock_acquire(&state.lock);
    was_on = atomic_load(&state.is_on);
    atomic_store(&state.is_on, false);
    LIST_FOREACH_SAFE(node, &state.clients) {
        list_remove(node);
        list_push_back(&clients, node);
    }
    spinlock_release(&state.lock);
    if (!was_on)
        return false;
    pause_for(PAUSE_FOR_SHUTDOWN, false);
    pause_for_over();
    LIST_FOREACH_SAFE(node, &clients) {
        struct waiting *waiting = container_of(node, struct waiting, node);
        struct mail *mail = &waiting->mail;

        list_remove(node);
        worker_post(waiting->worker, &mail);
    }
    return true;
}

void shutdown_wait_look_again(void)
{
    if (shutdown_waits() && !atomic_exchange(&state.has_news, true))
        worker_wake(&server_instance()->workers[0]);
}

static bool is_late(void)
{
    return (int64_t)clock_monotonic_ms() >= atomic_load_explicit(&state.end_ms, memory_order_relaxed);
}

/* With the gate owned: no command that writes is inside, and none comes. */
static bool end_server(struct worker *worker)
{
    unsigned flags;

    spinlock_acquire(&state.lock);
    flags = state.flags;
    spinlock_release(&state.lock);
    state.wait->log_end();
    access_begin(&worker->run.access, worker_now_ms(worker), true);
    return shutdown_begin(worker->server, flags, &worker->run.access);
}

static void look(struct worker *worker)
{
    worker_assert_zero(worker);
    atomic_store(&state.has_news, false);
    if (!shutdown_waits() || worker->reentrant ||
        (!exclusive_is_wished(worker, GATE_WISH_SHUTDOWN) && !is_late() && !state.wait->is_over()))
        return;
    if (!exclusive_begin(worker, GATE_WISH_SHUTDOWN))
        return; /* it is woken */
    if (shutdown_waits() && (is_late() || state.wait->is_over()) && !end_server(worker)) {
        exclusive_end(worker);
        shutdown_forget_refused();
        (void)shutdown_wait_abort();
        return;
    }
    exclusive_end(worker);
}

static void on_wake(struct worker *worker)
{
    if (worker->index == 0 && shutdown_waits())
        look(worker);
}

static void sample(struct server *server)
{
    if (shutdown_waits())
        look(&server->workers[0]);
}

/* The clients of workers that have ended are gone, but what is kept of them stays open. The server may not even have
 * started. */
static void end(struct server *server)
{
    (void)server;
    spinlock_acquire(&state.lock);
    LIST_FOREACH_SAFE(node, &state.clients) {
        list_remove(node);
        mem_free(container_of(node, struct waiting, node));
    }
    spinlock_release(&state.lock);
}

const struct lifecycle shutdown_wait_lifecycle = {.worker_wake = on_wake, .server_sample = sample, .server_end = end};

static uint64_t left_ms(void)
{
    return (uint64_t)MAX(atomic_load_explicit(&state.end_ms, memory_order_relaxed) - (int64_t)clock_monotonic_ms(), 0);
}

static bool is_wanted(const void *picture)
{
    (void)picture;
    return shutdown_waits();
}

const struct info_row shutdown_wait_info[] = {
    INFO_CALL("shutdown_in_milliseconds", left_ms, .wanted = is_wanted),
    {0},
};
