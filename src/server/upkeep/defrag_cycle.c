#include "server/upkeep/defrag_cycle.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mem_move.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/core/lifecycle.h"
#include "server/core/server.h"
#include "server/core/stats_info.h"
#include "server/observe/latency.h"
#include "store/defrag.h"

#include <string.h>

enum {
    SECOND_US = 1000000,
    SLICE_MOST_US = 500, /* when a pause was longer than it should be */
    REST_US = SECOND_US,
    USEFUL_SHARE = 1000, /* a walk that moves less than one block in so many was for nothing */
    PAUSE_LEAST_S = 10,  /* after a run that was given up */
    PAUSE_MOST_S = 640,
    MORE_HOLES_SHARE = 4 /* more by one in so many: somebody has deleted, so it is worth a try */
};

static _Atomic int64_t option_on, option_ignore_bytes, option_lower, option_upper; /* global: option storage */
static _Atomic int64_t option_cycle_min, option_cycle_max, option_scan_fields;     /* global: option storage */

static _Atomic unsigned running_percent;  /* atomic: relaxed; written by worker 0 */
static _Atomic uint64_t running_since_us; /* atomic: relaxed; monotonic, 0: not running */
static _Atomic uint64_t earlier_us;       /* atomic: relaxed; of runs that have ended */
static _Atomic uint64_t run_count;        /* atomic: relaxed; written by worker 0: the number of this run */

static struct {
    uint64_t pause_s;               /* 0: none was given up since there was nothing to do */
    uint64_t until_us, holes_bytes; /* the time and the size of holes at which it tries again */
} given_up;                         /* owner: worker 0 */

/* Of a worker; its own thread's, except the atomics. */
static struct state {
    struct defrag_counters counters;
    struct defrag_walk walk;
    uint64_t run;                 /* to which run the walk belongs */
    _Atomic uint64_t useless_run; /* atomic, relaxed: in which it went through all for nothing; read by worker 0 */
    uint64_t slice_end_us;        /* monotonic: when it worked last */
    struct loop_timer timer;
} CACHE_ALIGNED states[WORKERS_MOST + 1];

/* ----------------------------------------------------------------------------------------------------- options -- */

static const char *check_on(const struct option_row *row, int64_t number, struct slice text)
{
    (void)row;
    (void)text;
    return number != 0 && !mem_move_is_possible()
               ? "Active defragmentation cannot be enabled: the server's memory allocator is not a jemalloc that tells "
                 "where its holes are"
               : NULL;
}

static const struct option_row rows[] = {
    ROW_BOOL("activedefrag", &option_on, 0, OPTION_MUTABLE, "Defragment memory.", .check = check_on),
    ROW_MEMORY("active-defrag-ignore-bytes", &option_ignore_bytes, 104857600, 1, INT64_MAX, OPTION_MUTABLE,
               "Fragmentation in bytes from which on defragmentation begins."),
    ROW_INT("active-defrag-threshold-lower", &option_lower, 10, 0, 1000, OPTION_MUTABLE,
            "Fragmentation in percent from which on memory is defragmented."),
    ROW_INT("active-defrag-threshold-upper", &option_upper, 100, 0, 1000, OPTION_MUTABLE,
            "Fragmentation in percent from which on defragmentation takes its largest share of time."),
    ROW_INT("active-defrag-cycle-min", &option_cycle_min, 1, 1, 99, OPTION_MUTABLE,
            "Percent of a processor's time for defragmentation, of all threads together, at the lower threshold."),
    ROW_INT("active-defrag-cycle-max", &option_cycle_max, 25, 1, 99, OPTION_MUTABLE,
            "Percent of a processor's time for defragmentation, of all threads together, at the upper threshold."),
    ROW_INT("active-defrag-max-scan-fields", &option_scan_fields, 1000, 1, INT64_MAX, OPTION_MUTABLE,
            "Elements of a large value that defragmentation moves at a time."),
};

void defrag_cycle_setup(void)
{
    thread_assert_main();
    config_add_rows(rows, countof(rows));
}

/* -------------------------------------------------------------------------------------------------- how much -- */

/* Of a processor's time, for holes of so many percent. */
static unsigned percent_for(double holes_percent)
{
    double lower = (double)OPTION_GET(option_lower), upper = (double)OPTION_GET(option_upper);
    double least = (double)OPTION_GET(option_cycle_min), most = (double)OPTION_GET(option_cycle_max);
    double share = upper > lower ? (holes_percent - lower) / (upper - lower) : 1;

    return (unsigned)(least + (MAX(most, least) - least) * MIN(share, 1));
}

/* One that runs is not stopped by few bytes: it goes on until their share is small. */
static unsigned percent_now(bool runs, uint64_t *holes_bytes)
{
    struct mem_stats memory;
    double holes_percent;

    *holes_bytes = 0;
    if (!OPTION_IS(option_on))
        return 0;
    if (mem_move_is_everything())
        return (unsigned)OPTION_GET(option_cycle_max);
    if (!mem_move_is_possible())
        return 0;
    mem_stats(&memory);
    if (memory.allocated == 0 || memory.active < memory.allocated)
        return 0;
    *holes_bytes = memory.active - memory.allocated;
    holes_percent = (double)*holes_bytes / (double)memory.allocated * 100;
    if ((!runs && *holes_bytes < OPTION_GET_U64(option_ignore_bytes)) ||
        holes_percent < (double)OPTION_GET(option_lower))
        return 0;
    return percent_for(holes_percent);
}

static void run_begins(unsigned percent)
{
    assert(percent != 0 && defrag_cycle_current_us() == 0);
    atomic_fetch_add_explicit(&run_count, 1, memory_order_relaxed);
    atomic_store_explicit(&running_since_us, clock_monotonic_us(), memory_order_relaxed);
    log_verbose("Starting active defrag, %u%% of a processor's time", percent);
}

static void run_ends(void)
{
    uint64_t current_us = defrag_cycle_current_us();

    atomic_fetch_add_explicit(&earlier_us, current_us, memory_order_relaxed);
    atomic_store_explicit(&running_since_us, 0, memory_order_relaxed);
    log_verbose("Active defrag done in %llu ms", (unsigned long long)(current_us / 1000));
}

/* ------------------------------------------------------------------------------------------------- giving up -- */

static bool is_useless(const struct server *server)
{
    uint64_t run = atomic_load_explicit(&run_count, memory_order_relaxed);

    for (unsigned i = 0; i < server->worker_count; i++) {
        if (atomic_load_explicit(&states[i].useless_run, memory_order_relaxed) != run)
            return false;
    }
    return !mem_move_is_everything();
}

static void give_up(uint64_t now_us, uint64_t holes_bytes)
{
    given_up.pause_s = MIN(MAX(given_up.pause_s * 2, (uint64_t)PAUSE_LEAST_S), (uint64_t)PAUSE_MOST_S);
    given_up.until_us = now_us + given_up.pause_s * SECOND_US;
    given_up.holes_bytes = holes_bytes;
    log_verbose("Active defrag found nothing to move: pausing for %llu s unless fragmentation grows",
                (unsigned long long)given_up.pause_s);
}

static bool is_worth_a_try(uint64_t now_us, uint64_t holes_bytes)
{
    return given_up.pause_s == 0 || now_us >= given_up.until_us ||
           holes_bytes > given_up.holes_bytes + given_up.holes_bytes / MORE_HOLES_SHARE;
}

/* The percentage of time to use, considering the results so far. */
static unsigned percent_worth_it(uint64_t now_us, bool runs)
{
    uint64_t holes_bytes;
    unsigned percent = percent_now(runs, &holes_bytes);

    if (percent == 0) {
        given_up.pause_s = 0;
    } else if (runs && is_useless(server_instance())) {
        give_up(now_us, holes_bytes);
        percent = 0;
    } else if (!runs && !mem_move_is_everything() && !is_worth_a_try(now_us, holes_bytes)) {
        percent = 0;
    }
    return percent;
}

static void sample(struct server *server)
{
    static uint64_t looked_us; /* owner: worker 0 */
    unsigned before = defrag_cycle_percent(), percent;
    uint64_t now_us;

    (void)server;
    if (LIKELY(!OPTION_IS(option_on)) && before == 0) {
        given_up.pause_s = 0; /* switching it on again starts a try */
        return;
    }
    now_us = clock_monotonic_us();
    if (OPTION_IS(option_on) && now_us - looked_us < SECOND_US)
        return;
    looked_us = now_us;
    percent = percent_worth_it(now_us, before != 0);
    if (before == 0 && percent != 0)
        run_begins(percent);
    else if (before != 0 && percent == 0)
        run_ends();
    atomic_store_explicit(&running_percent, percent, memory_order_relaxed);
}

unsigned defrag_cycle_percent(void)
{
    return atomic_load_explicit(&running_percent, memory_order_relaxed);
}

uint64_t defrag_cycle_current_us(void)
{
    uint64_t since_us = atomic_load_explicit(&running_since_us, memory_order_relaxed);

    return since_us != 0 ? clock_monotonic_us() - since_us : 0;
}

static uint64_t total_us(void)
{
    return atomic_load_explicit(&earlier_us, memory_order_relaxed) + defrag_cycle_current_us();
}

/* --------------------------------------------------------------------------------------------------- a slice -- */

/* False: the walk over this worker's stripes ended. Inside the gate. */
static bool work_until(struct worker *worker, uint64_t end_us)
{
    struct state *mine = &states[worker->index];

    do {
        if (!defrag_step(&worker->run.access, &mine->walk, worker->index, worker->server->worker_count))
            return false;
    } while (clock_monotonic_us() < end_us);
    return true;
}

/* Pause to work, as pause_parts to percent: a worker's share of so many percent of a processor. */
static uint64_t pause_parts(const struct worker *worker, unsigned percent)
{
    assert(percent < 100);
    return 100 * worker->server->worker_count - percent;
}

/* Time that is ours after so long a pause. */
static uint64_t slice_us(const struct worker *worker, uint64_t now_us, unsigned percent)
{
    const struct state *mine = &states[worker->index];
    uint64_t pause_us = now_us - mine->slice_end_us;

    return MIN(pause_us * percent / pause_parts(worker, percent), (uint64_t)SLICE_MOST_US);
}

/* A walk of an earlier run may be half done; its results do not count. */
static void begin_walk(struct worker *worker)
{
    struct state *mine = &states[worker->index];
    uint64_t run = atomic_load_explicit(&run_count, memory_order_relaxed);

    if (mine->run == run)
        return;
    mine->run = run;
    defrag_walk_init(&mine->walk, worker->index, &mine->counters);
}

/* Inside the gate. False: the worker has gone through its stripes for next to nothing. */
static bool work(struct worker *worker, unsigned percent)
{
    struct state *mine = &states[worker->index];
    struct defrag_walk *walk = &mine->walk;
    uint64_t begin_us = clock_monotonic_us(), end_us;
    bool was_useful = true;

    worker_assert_inside(worker);
    assert(walk->moved <= walk->seen);
    begin_walk(worker);
    access_begin(&worker->run.access, worker_now_ms(worker), false);
    walk->most_fields = OPTION_GET_U64(option_scan_fields);
    if (!work_until(worker, begin_us + slice_us(worker, begin_us, percent))) {
        was_useful = walk->moved * USEFUL_SHARE > walk->seen;
        walk->moved = walk->seen = 0;
        atomic_store_explicit(&mine->useless_run, was_useful ? 0 : mine->run, memory_order_relaxed);
    }
    end_us = clock_monotonic_us();
    mine->slice_end_us = end_us;
    latency_add(LATENCY_ACTIVE_DEFRAG_CYCLE, (int64_t)((end_us - begin_us) / 1000));
    return was_useful;
}

/* A slice. A worker that found the gate closed continues until it was inside once, even if nothing is left to do: the
 * gate stays open for it then. */
static void on_timer(struct loop *loop, struct loop_timer *timer)
{
    struct worker *worker = loop_user(loop);
    unsigned percent = defrag_cycle_percent();
    int64_t pause_us = DEFRAG_SLICE_US;

    if (gate_enter(&worker->member)) {
        if (percent == 0) {
            gate_leave(&worker->member);
            return;
        }
        pause_us = (int64_t)(DEFRAG_SLICE_US * pause_parts(worker, percent) / percent);
        if (!atomic_load_explicit(&worker->server->cron_paused, memory_order_relaxed) && !work(worker, percent))
            pause_us = REST_US;
        gate_leave(&worker->member);
    }
    loop_timer_start(loop, timer, pause_us, on_timer);
}

void defrag_cycle_turn(struct worker *worker)
{
    struct state *mine = &states[worker->index];

    worker_assert_self(worker);
    if (LIKELY(defrag_cycle_percent() == 0) || loop_timer_is_running(&mine->timer))
        return;
    mine->slice_end_us = clock_monotonic_us();
    loop_timer_start(worker->loop, &mine->timer, DEFRAG_SLICE_US, on_timer);
}

/* ------------------------------------------------------------------------------------------------------ around -- */

static void fill(struct server_stats *stats)
{
    stats->defrag_us = total_us();
    for (unsigned i = 0; i < server_instance()->worker_count; i++) {
        const struct defrag_counters *counters = &states[i].counters;

        stats->defrag_hits += atomic_load_explicit(&counters->hits, memory_order_relaxed);
        stats->defrag_misses += atomic_load_explicit(&counters->misses, memory_order_relaxed);
        stats->defrag_key_hits += atomic_load_explicit(&counters->key_hits, memory_order_relaxed);
        stats->defrag_key_misses += atomic_load_explicit(&counters->key_misses, memory_order_relaxed);
    }
}

static bool start(struct server *server)
{
    (void)server;
    server_stats_add_source(fill);
    return true;
}

static void init(struct worker *worker)
{
    struct state *mine = &states[worker->index];

    memset(mine, 0, sizeof(*mine));
    defrag_walk_init(&mine->walk, worker->index, &mine->counters);
}

const struct lifecycle defrag_cycle_lifecycle = {
    .server_start = start,
    .server_sample = sample, /* it looks once a second */
    .worker_init = init,
};

static uint64_t info_percent(void)
{
    return defrag_cycle_percent();
}

static uint64_t info_current_ms(void)
{
    return defrag_cycle_current_us() / 1000;
}

const struct info_row defrag_cycle_info[] = {
    INFO_CALL("active_defrag_running", info_percent),         INFO_STAT("active_defrag_hits", defrag_hits),
    INFO_STAT("active_defrag_misses", defrag_misses),         INFO_STAT("active_defrag_key_hits", defrag_key_hits),
    INFO_STAT("active_defrag_key_misses", defrag_key_misses), INFO_STAT_MS("total_active_defrag_time", defrag_us),
    INFO_CALL("current_active_defrag_time", info_current_ms), {0},
};
