#include "server/upkeep/slot_cycle.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "net/loop.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/loading.h"

enum { LOOK_US = 100 };

static struct {
    _Atomic bool is_wanted;        /* atomic: relaxed; a walk has begun; changes inside the gate */
    struct loop_timer timer;       /* worker 0's */
    uint64_t spent_us, longest_us; /* worker 0's inside the gate, or whose the gate is */
} cycle;                           /* global: of the one walk */

static bool is_wanted(void)
{
    return atomic_load_explicit(&cycle.is_wanted, memory_order_relaxed);
}

static void set_wanted(bool wanted)
{
    atomic_store_explicit(&cycle.is_wanted, wanted, memory_order_relaxed);
}

void slot_cycle_begin(const struct slot_terms *terms)
{
    gate_assert_alone();
    slot_walk_begin(terms);
    cycle.spent_us = cycle.longest_us = 0;
    set_wanted(true);
}

bool slot_cycle_runs(void)
{
    return is_wanted();
}

uint64_t slot_cycle_spent_us(void)
{
    gate_assert_alone();
    return cycle.spent_us;
}

uint64_t slot_cycle_longest_us(void)
{
    gate_assert_alone();
    return cycle.longest_us;
}

/* A slice that has taken so long goes on. *look_us: when to look for other work again, which costs a system call. */
static bool may_go_on(const struct worker *worker, uint64_t spent_us, uint64_t *look_us)
{
    if (LIKELY(spent_us < *look_us))
        return true;
    if (gate_is_wanted(&worker->member))
        return false;
    *look_us = spent_us + LOOK_US;
    return spent_us < SLOT_CYCLE_IDLE_US && !loop_has_events(worker->loop);
}

/* Steps until the slice is over. Returns how long it took. */
static uint64_t work(struct worker *worker)
{
    struct access *access = &worker->run.access;
    uint64_t begin_us = clock_monotonic_us(), at_us = begin_us, look_us = SLOT_CYCLE_SLICE_US, now_us;
    bool has_ended;

    worker_assert_inside(worker);
    access_begin(access, worker_now_ms(worker), false);
    do {
        has_ended = slot_walk_step(access);
        now_us = clock_monotonic_us();
        cycle.longest_us = MAX(cycle.longest_us, now_us - at_us);
        at_us = now_us;
    } while (!has_ended && may_go_on(worker, now_us - begin_us, &look_us));
    cycle.spent_us += now_us - begin_us;
    if (has_ended)
        set_wanted(false);
    return now_us - begin_us;
}

/* A worker that found the gate closed continues until it was inside once: the gate stays open for it then. */
static void on_timer(struct loop *loop, struct loop_timer *timer)
{
    struct worker *worker = loop_user(loop);
    uint64_t spent_us = SLOT_CYCLE_SLICE_US;

    if (gate_enter(&worker->member)) {
        if (!is_wanted()) {
            gate_leave(&worker->member);
            return;
        }
        if (!loading_runs() && !atomic_load_explicit(&worker->server->cron_paused, memory_order_relaxed))
            spent_us = work(worker);
        gate_leave(&worker->member);
    }
    loop_timer_start(loop, timer, (int64_t)spent_us * (100 - SLOT_CYCLE_PERCENT) / SLOT_CYCLE_PERCENT, on_timer);
}

static void sample(struct server *server)
{
    struct worker *worker = &server->workers[0];

    worker_assert_self(worker);
    if (LIKELY(!is_wanted()) || loop_timer_is_running(&cycle.timer))
        return;
    loop_timer_start(worker->loop, &cycle.timer, SLOT_CYCLE_SLICE_US, on_timer);
}

static bool start(struct server *server)
{
    slot_walk_setup(server->store);
    return true;
}

static void end(struct server *server)
{
    (void)server;
    slot_walk_teardown();
}

const struct lifecycle slot_cycle_lifecycle = {
    .server_start = start,
    .server_sample = sample,
    .server_end = end,
};
