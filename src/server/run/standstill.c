#include "server/run/standstill.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "server/core/lifecycle.h"
#include "server/core/server.h"
#include "server/core/worker.h"

#include <errno.h>
#include <time.h>

/* Other workers stop where they read their mail, until the worker that runs the command reads its own mail, behind the
 * command in the same turn: then the gate is open again. All workers take up the commands that arrived meanwhile in
 * their next turn. At the end of that turn, before they send output, they wait for each other. */

enum { NAP_US = 50 };

/* A worker's part in it: in its mailbox, then on its list. */
struct part {
    struct mail mail;
    struct list_node node;
    struct standstill *standstill;
    bool has_turned; /* owner: the worker; it has taken up the commands that arrived */
};

struct standstill {
    int64_t until_us;        /* const, monotonic, like `worker` */
    struct worker *worker;   /* the worker that runs the command */
    _Atomic bool is_over;    /* atomic, seq_cst, as all here: the gate is open again */
    _Atomic uint32_t behind; /* number of workers that have not taken up the commands */
    _Atomic uint32_t users;  /* the last one frees it */
    struct part parts[];
};

/* A worker's; its own thread's. */
static struct state {
    struct list parts; /* those that are over for this worker, but not yet for all */
} CACHE_ALIGNED states[WORKERS_MOST + 1];

static struct list *parts_of(const struct worker *worker)
{
    return &states[worker->index].parts;
}

static void sleep_until(int64_t until_us)
{
    const struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static int64_t now_us(void)
{
    return (int64_t)clock_monotonic_us();
}

static void release(struct standstill *standstill)
{
    const uint32_t users = atomic_fetch_sub(&standstill->users, 1);

    assert(users != 0);
    if (users == 1)
        mem_free(standstill);
}

static void wait_for_the_end(const struct worker *worker, const struct standstill *standstill)
{
    sleep_until(standstill->until_us);
    while (!atomic_load(&standstill->is_over) && !server_is_stopping(worker->server) &&
           now_us() < standstill->until_us + STANDSTILL_PATIENCE_US)
        sleep_until(now_us() + NAP_US);
}

static void wait_for_others(const struct worker *worker, struct standstill *standstill)
{
    const int64_t until_us = now_us() + STANDSTILL_PATIENCE_US;

    assert(atomic_load(&standstill->behind) != 0);
    atomic_fetch_sub(&standstill->behind, 1);
    while (atomic_load(&standstill->behind) != 0 && !server_is_stopping(worker->server) && now_us() < until_us)
        sleep_until(now_us() + NAP_US);
}

static void deliver(struct worker *worker, struct mail *mail)
{
    struct part *part = container_of(mail, struct part, mail);
    struct standstill *standstill = part->standstill;

    if (worker == standstill->worker)
        atomic_store(&standstill->is_over, true);
    else if (!server_is_stopping(worker->server))
        wait_for_the_end(worker, standstill);
    list_push_back(parts_of(worker), &part->node);
    worker_at_turn_end(worker);
}

static void turn_end(struct worker *worker)
{
    LIST_FOREACH_SAFE(node, parts_of(worker)) {
        struct part *part = container_of(node, struct part, node);

        if (!part->has_turned) {
            part->has_turned = true;
            worker_at_turn_end(worker);
            worker_wake(worker); /* the next turn comes at once */
            continue;
        }
        list_remove(node);
        wait_for_others(worker, part->standstill);
        release(part->standstill);
    }
}

static void init(struct worker *worker)
{
    list_init(parts_of(worker));
}

static void fini(struct worker *worker)
{
    struct list_node *node;

    while ((node = list_pop_front(parts_of(worker))) != NULL)
        release(container_of(node, struct part, node)->standstill);
}

void standstill(struct worker *worker, int64_t us)
{
    struct server *server = worker->server;
    const uint32_t count = server->worker_count;
    const int64_t until_us = now_us() + us;
    struct standstill *standstill;

    worker_assert_self(worker);
    assert(worker->run.access.exclusive); /* it owns the gate, or its script has escalated */
    if (count > 1) {
        standstill = mem_alloc_zero(sizeof(*standstill) + count * sizeof(struct part));
        standstill->until_us = until_us;
        standstill->worker = worker;
        atomic_init(&standstill->behind, count);
        atomic_init(&standstill->users, count);
        for (uint32_t i = 0; i < count; i++) {
            struct part *part = &standstill->parts[i];
            struct mail *mail = &part->mail;

            part->standstill = standstill;
            list_node_init(&part->node);
            mail->deliver = deliver;
            worker_post(&server->workers[i], &mail);
        }
    }
    sleep_until(until_us);
}

const struct lifecycle standstill_lifecycle = {
    .worker_init = init,
    .worker_fini = fini,
    .worker_turn_end = turn_end,
};
