#include "server/upkeep/active_expiry.h"

#include "base/assert.h"
#include "base/clock.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/core/lifecycle.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/core/stats_info.h"
#include "server/durable/loading.h"
#include "server/observe/latency.h"
#include "server/run/pause.h"
#include "server/upkeep/cron_runner.h"
#include "server/upkeep/defrag_cycle.h"

enum { SECOND_US = 1000 * 1000, SLICE_US = 1000, KEYS_A_STEP = 64, SHARE_PERCENT = 25, SHARE_A_STEP = 2 };

static _Atomic int64_t option_effort; /* global: option storage */

static const struct option_row rows[] = {
    ROW_INT("active-expire-effort", &option_effort, 1, 1, 10, OPTION_MUTABLE,
            "Share of time for deleting expired keys while there are many: 1: 25 %, each one more: 2 % more."),
};

void active_expiry_setup(void)
{
    thread_assert_main();
    config_add_rows(rows, countof(rows));
}

uint64_t active_expiry_rest_us(uint64_t spent_us, int64_t effort)
{
    uint64_t share = SHARE_PERCENT + SHARE_A_STEP * (uint64_t)(effort - 1);

    assert(effort >= 1 && share < 100);
    return spent_us * (100 - share) / share;
}

/* A worker's own thread's. */
static struct state {
    uint32_t next_stripe; /* where it continues */
    struct loop_timer timer;
} CACHE_ALIGNED states[WORKERS_MOST];

/* Deletes the due keys of one stripe and database; false: the time slice is over. A busy stripe is left for the next
 * time: another thread is using its keys. */
static bool expire_stripe(struct worker *worker, uint32_t stripe, unsigned db, uint64_t end_us)
{
    struct access *access = &worker->run.access;
    uint32_t busy, done;

    do {
        if (!access_lock(access, &stripe, 1, &busy))
            return true;
        access->effects = journal_is_on(&worker->server->journal) ? &worker->run.effects : NULL;
        done = access_expire_due(access, stripe, db, KEYS_A_STEP);
        access_unlock(access, &stripe, 1);
        if (done != 0 && clock_monotonic_us() >= end_us)
            return false;
    } while (done == KEYS_A_STEP);
    return true;
}

static bool expire_databases(struct worker *worker, uint32_t stripe, uint64_t end_us)
{
    const struct store *store = worker->server->store;

    for (unsigned db = 0; db < store_database_bound(store); db++) {
        if (access_has_due(&worker->run.access, stripe, db) && !expire_stripe(worker, stripe, db, end_us))
            return false;
    }
    return true;
}

/* Goes once round the worker's stripes, every n-th one, from where it was; a look costs a load where nothing is due.
 * False: time was up before. */
static bool expire_slice(struct worker *worker, uint64_t end_us)
{
    const struct store *store = worker->server->store;
    struct state *mine = &states[worker->index];

    worker_assert_inside(worker);
    access_assert_none_held(&worker->run.access);
    for (uint32_t i = 0; i <= store->stripe_mask; i += worker->server->worker_count) {
        uint32_t stripe = mine->next_stripe <= store->stripe_mask ? mine->next_stripe : worker->index;

        if (stripe <= store->stripe_mask && !expire_databases(worker, stripe, end_us)) {
            mine->next_stripe = stripe;
            return false;
        }
        mine->next_stripe = stripe + worker->server->worker_count;
    }
    return true;
}

/* With the counts of what goes. */
static bool expire_counted(struct worker *worker, uint64_t end_us)
{
    const struct store_counters *counters = worker->run.access.counters;
    const uint64_t keys = atomic_load_explicit(&counters->expired_keys, memory_order_relaxed);
    const uint64_t members = atomic_load_explicit(&counters->expired_members, memory_order_relaxed);
    const bool all = expire_slice(worker, end_us);

    counter_add(&worker->stats.active_expired_keys,
                atomic_load_explicit(&counters->expired_keys, memory_order_relaxed) - keys);
    counter_add(&worker->stats.active_expired_members,
                atomic_load_explicit(&counters->expired_members, memory_order_relaxed) - members);
    return all;
}

bool active_expiry_may_run(const struct worker *worker)
{
    return atomic_load_explicit(&worker->server->store->active_expire, memory_order_relaxed) &&
           !atomic_load_explicit(&worker->server->cron_paused, memory_order_relaxed) && !pause_is_on() &&
           !role_follows();
}

static void on_timer(struct loop *loop, struct loop_timer *timer)
{
    struct worker *worker = loop_user(loop);
    uint64_t begin_us, spent_us;
    bool all;

    worker_assert_outside(worker);
    loop_timer_start(loop, timer, SECOND_US / server_hz(worker->server), on_timer);
    defrag_cycle_turn(worker);
    if (!active_expiry_may_run(worker))
        return;
    begin_us = clock_monotonic_us();
    if (UNLIKELY(!cron_runner_turn(worker)))
        loop_timer_start(loop, timer,
                         (int64_t)active_expiry_rest_us(clock_monotonic_us() - begin_us, OPTION_GET(option_effort)),
                         on_timer);
    if (!gate_enter(&worker->member))
        return;
    if (UNLIKELY(loading_runs())) { /* who loads says when a key is gone */
        gate_leave(&worker->member);
        return;
    }
    begin_us = clock_monotonic_us();
    /* Since just now, the first two: that changes while nobody is inside. Jobs run during an import. */
    if (role_follows() || pause_is_on() || store_is_importing(worker->server->store)) {
        gate_leave(&worker->member);
        return;
    }
    access_begin(&worker->run.access, worker_now_ms(worker), false);
    all = expire_counted(worker, begin_us + SLICE_US);
    gate_leave(&worker->member);
    spent_us = clock_monotonic_us() - begin_us;
    counter_add(&worker->stats.expire_us, spent_us);
    latency_add(LATENCY_EXPIRE_CYCLE, (int64_t)(spent_us / 1000));
    if (all)
        return;
    counter_add(&worker->stats.expire_cuts, 1);
    loop_timer_start(loop, timer, (int64_t)active_expiry_rest_us(spent_us, OPTION_GET(option_effort)), on_timer);
}

static void start(struct worker *worker)
{
    struct state *mine = &states[worker->index];

    mine->timer = (struct loop_timer){0};
    mine->next_stripe = worker->index;
    loop_timer_start(worker->loop, &mine->timer, SECOND_US / server_hz(worker->server), on_timer);
}

const struct lifecycle active_expiry_lifecycle = {
    .worker_start = start,
};

const struct info_row active_expiry_info[] = {
    INFO_STAT("expired_keys_active", active_expired_keys),
    INFO_STAT("expired_subkeys_active", active_expired_members),
    INFO_STAT("expired_time_cap_reached_count", expire_cuts),
    INFO_STAT_MS("expire_cycle_cpu_milliseconds", expire_us),
    {0},
};
