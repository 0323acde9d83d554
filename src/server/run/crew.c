#include "server/run/crew.h"

#include "base/assert.h"
#include "base/fence.h"
#include "server/core/server.h"
#include "server/core/worker.h"

#include <sched.h>
#include <stdatomic.h>

enum { SPINS_BEFORE_YIELD = 2000 };

/* A part is free while its state is twice the number of the work, and taken with one more. So who comes too late, with
 * the number of an earlier work, takes nothing. The leader sets the members that are not atomic before it sets the
 * states; they are read by those only who have taken a part, and do not change before all parts are done. */
static struct {
    _Atomic uint64_t number;                  /* atomic: release and acquire; of the work */
    _Atomic uint32_t part_count;              /* atomic: relaxed */
    _Atomic uint64_t states[CREW_PARTS_MOST]; /* atomic: acquire and release */
    _Atomic uint32_t done_count;              /* atomic: release by who has run a part, acquire by the leader */
    const struct gate_member *member;
    void (*run)(struct worker *worker, uint32_t part, void *context);
    void *context;
} crew;

/* A worker's mail, which says that there is work. */
static struct state {
    struct mail mail;
    _Atomic bool is_posted; /* atomic: set by the leader, reset by the worker before it looks for work */
} CACHE_ALIGNED states[WORKERS_MOST + 1];

static bool take(uint32_t part, uint64_t number)
{
    uint64_t expected = number * 2;

    return atomic_compare_exchange_strong_explicit(&crew.states[part], &expected, expected + 1, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

/* In another order for each worker, so that they do not meet at each part. */
static void run_parts(struct worker *worker, uint64_t number, bool helps)
{
    const uint32_t count = atomic_load_explicit(&crew.part_count, memory_order_relaxed);

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t part = (worker->index + i) % count;

        if (!take(part, number))
            continue;
        if (helps)
            gate_help_begin(crew.member);
        crew.run(worker, part, crew.context);
        if (helps)
            gate_help_end(crew.member);
        atomic_fetch_add_explicit(&crew.done_count, 1, memory_order_release);
    }
}

static void deliver(struct worker *worker, struct mail *mail)
{
    struct state *state = container_of(mail, struct state, mail);

    worker_assert_outside(worker);
    atomic_store(&state->is_posted, false);
    run_parts(worker, atomic_load_explicit(&crew.number, memory_order_acquire), true);
    if (worker->has_deferred)
        worker_run_deferred(worker);
}

static void call_others(const struct worker *leader, uint32_t part_count)
{
    struct server *server = leader->server;

    for (uint32_t i = 0, called = 1; i < server->worker_count && called < part_count; i++) {
        struct mail *mail = &states[i].mail;

        if (i == leader->index)
            continue;
        called++;
        if (atomic_exchange(&states[i].is_posted, true))
            continue;
        mail->deliver = deliver;
        worker_post(&server->workers[i], &mail);
    }
}

void crew_run(struct worker *leader, uint32_t part_count,
              void (*run)(struct worker *worker, uint32_t part, void *context), void *context)
{
    const uint64_t number = atomic_load_explicit(&crew.number, memory_order_relaxed) + 1;
    unsigned spins = 0;

    worker_assert_self(leader);
    gate_assert_owned(&leader->member);
    assert(part_count != 0 && part_count <= CREW_PARTS_MOST);
    crew.member = gate_alone_here;
    crew.run = run;
    crew.context = context;
    atomic_store_explicit(&crew.part_count, part_count, memory_order_relaxed);
    atomic_store_explicit(&crew.done_count, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < part_count; i++)
        atomic_store_explicit(&crew.states[i], number * 2, memory_order_release);
    atomic_store_explicit(&crew.number, number, memory_order_release);
    call_others(leader, part_count);
    run_parts(leader, number, false);
    while (atomic_load_explicit(&crew.done_count, memory_order_acquire) != part_count) {
        if (++spins % SPINS_BEFORE_YIELD == 0)
            (void)sched_yield();
        else
            fence_pause();
    }
}

/* A mail that was posted and not read is a member of `states`: there is nothing to free. */
static void init(struct worker *worker)
{
    atomic_store(&states[worker->index].is_posted, false);
}

const struct lifecycle crew_lifecycle = {.worker_init = init};
