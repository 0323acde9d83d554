#include "server/memory/memory_limit.h"

#include "base/assert.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/status.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/core/client.h"
#include "server/core/lifecycle.h"
#include "server/core/run_time.h"
#include "server/core/server.h"
#include "server/durable/aof_hold.h"
#include "server/durable/aof_writer.h"
#include "server/durable/loading.h"
#include "server/observe/latency.h"
#include "store/eviction.h"
#include "store/lazyfree.h"
#include "store/snapshot_live.h"
#include "store/window.h"

#include <math.h>
#include <stdio.h>

enum { STEPS_A_LOOK = 16, TIMER_US = 1000, MEMINFO_LINE = 128 };

_Atomic uint64_t memory_limit; /* global: see memory_limit.h */

/* A worker's; its own thread's. */
static struct state {
    struct eviction_pool pool;
    enum eviction_measure measure; /* the measure of the pool's scores */
    bool expiring_only;
    struct loop_timer timer;
} CACHE_ALIGNED states[WORKERS_MOST + 1];

static struct state *of(const struct worker *worker)
{
    return &states[worker->index];
}

static _Atomic int64_t option_samples, option_tenacity, option_force_percent; /* global: option storage */

static _Atomic bool limit_ignored;         /* atomic: a master decides what goes */
static _Atomic uint64_t forced_limit;      /* atomic: of force-eviction-percent; 0: none */
static _Atomic uint64_t machine_available; /* atomic: bytes, when it was looked at last */
static _Atomic uint64_t window_bytes;      /* atomic: relaxed; of store/window.h, when it was looked at last */
static _Atomic uint64_t exceeded_since_ms; /* atomic: monotonic; 0: below the limit */
static _Atomic uint64_t exceeded_ms;       /* atomic: earlier times together */

/* ----------------------------------------------------------------------------------------------------- options -- */

static void set_limit(void)
{
    uint64_t limit = OPTION_GET_U64(option_maxmemory), forced = atomic_load(&forced_limit);

    if (forced != 0)
        limit = limit == 0 ? forced : MIN(limit, forced);
    if (atomic_load(&limit_ignored))
        limit = 0;
    atomic_store_explicit(&memory_limit, limit, memory_order_relaxed);
}

void memory_limit_ignore(bool ignore)
{
    gate_assert_alone();
    atomic_store(&limit_ignored, ignore);
    set_limit();
}

static void on_timer(struct loop *loop, struct loop_timer *timer)
{
    worker_assert_self(loop_user(loop));
    (void)timer;
    if (memory_limit_is_reached())
        status_ignore(memory_make_room(loop_user(loop)), "nobody waits for room here");
}

static const char *apply_maxmemory(const struct option_row *row)
{
    struct worker *worker = worker_self();
    uint64_t used = mem_used();

    gate_assert_alone();
    (void)row;
    set_limit();
    if (!memory_limit_is_reached())
        return NULL;
    log_warning("WARNING: the new maxmemory value set via CONFIG SET (%llu) is smaller than the current memory usage "
                "(%llu). This will result in key eviction and/or the inability to accept new write commands depending "
                "on the maxmemory-policy.",
                (unsigned long long)OPTION_GET_U64(option_maxmemory), (unsigned long long)used);
    if (worker != NULL) /* the gate is held just now */
        loop_timer_start(worker->loop, &of(worker)->timer, 0, on_timer);
    return NULL;
}

static void look_at_machine(void);

static const char *apply_force_percent(const struct option_row *row)
{
    gate_assert_alone();
    (void)row;
    look_at_machine();
    return NULL;
}

static const struct option_row rows[] = {
    ROW_INT("maxmemory-samples", &option_samples, 5, 1, INT32_MAX, OPTION_MUTABLE,
            "Keys that are compared for each eviction."),
    ROW_INT("maxmemory-eviction-tenacity", &option_tenacity, 10, 0, 100, OPTION_MUTABLE,
            "How long a command may evict before it runs: 10: half a millisecond; 100: until there is room."),
    ROW_INT("force-eviction-percent", &option_force_percent, 0, 0, 100, OPTION_MUTABLE,
            "Share of the machine's memory in use above which keys are evicted; 0: off.", .apply = apply_force_percent),
};

void memory_limit_setup(void)
{
    gate_assert_main_alone();
    config_add_rows(rows, countof(rows));
}

static bool start(struct server *server)
{
    gate_assert_main_alone();
    config_on_change("maxmemory", apply_maxmemory);
    server->store->counted_bytes = memory_counted;
    look_at_machine();
    set_limit();
    return true;
}

/* ------------------------------------------------------------------------------------- the memory of the machine -- */

static bool read_meminfo(uint64_t *total, uint64_t *available)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[MEMINFO_LINE];
    unsigned long long kib;

    *total = *available = 0;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "MemTotal: %llu", &kib) == 1)
            *total = kib * 1024;
        else if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
            *available = kib * 1024;
    }
    if (file != NULL)
        fclose(file);
    return *total != 0 && *available != 0;
}

bool memory_available(uint64_t *bytes)
{
    *bytes = atomic_load(&machine_available);
    return OPTION_GET(option_force_percent) != 0 && *bytes != 0;
}

/* --------------------------------------------------------------------------------------------------- accounting -- */

static uint64_t (*replica_bytes)(void); /* const after setup; NULL: none */

void memory_limit_of_replicas(uint64_t (*bytes)(void))
{
    gate_assert_main_alone();
    replica_bytes = bytes;
}

uint64_t memory_of_journal(void)
{
    struct journal *journal = &server_instance()->journal;

    return journal_memory_bytes(journal) + journal_passing_bytes(journal) +
           (journal_is_on(journal) ? aof_writer_memory_bytes() : 0);
}

uint64_t memory_of_window(void)
{
    return atomic_load_explicit(&window_bytes, memory_order_relaxed);
}

uint64_t memory_set_aside(void)
{
    const struct server *server = server_instance();
    uint64_t bytes = memory_of_journal() + memory_of_window() + live_kept_bytes(server->store) +
                     (replica_bytes != NULL ? replica_bytes() : 0);

    for (unsigned i = 0; i < server->worker_count; i++) {
        const struct worker *worker = &server->workers[i];

        bytes += atomic_load_explicit(&worker->backlog_bytes, memory_order_relaxed) + aof_hold_bytes(worker) +
                 output_pool_transient_bytes(loop_output_pool(worker->loop));
    }
    return bytes;
}

uint64_t memory_counted(void)
{
    uint64_t used = mem_used();

    return used - MIN(used, memory_set_aside());
}

static void note_state(bool exceeded)
{
    uint64_t now = clock_monotonic_ms(), since = 0;

    if (exceeded) {
        (void)atomic_compare_exchange_strong(&exceeded_since_ms, &since, now);
    } else if (atomic_load_explicit(&exceeded_since_ms, memory_order_relaxed) != 0) {
        since = atomic_exchange(&exceeded_since_ms, 0);
        if (since != 0)
            atomic_fetch_add(&exceeded_ms, now - since);
    }
}

uint64_t memory_exceeded_current_ms(void)
{
    uint64_t since = atomic_load(&exceeded_since_ms);

    return since != 0 ? clock_monotonic_ms() - since : 0;
}

uint64_t memory_exceeded_total_ms(void)
{
    return atomic_load(&exceeded_ms) + memory_exceeded_current_ms();
}

static void look_at_machine(void)
{
    uint64_t percent = OPTION_GET_U64(option_force_percent), total, available, least, forced = 0;

    if (percent != 0 && read_meminfo(&total, &available)) {
        least = total / 100 * (100 - percent);
        atomic_store(&machine_available, available);
        if (available < least) /* less than now by this amount */
            forced = memory_counted() > least - available ? memory_counted() - (least - available) : 1;
    }
    atomic_store(&forced_limit, forced);
    set_limit();
    if (!memory_limit_is_reached())
        note_state(false);
}

static void look_at_window(const struct store *store)
{
    struct window_totals totals;

    if (LIKELY(store->window == NULL))
        return;
    window_totals(store, &totals); /* too much to do before a command */
    atomic_store_explicit(&window_bytes, totals.bytes, memory_order_relaxed);
}

static void sample(struct server *server)
{
    worker_assert_zero(&server->workers[0]);
    look_at_window(server->store);
    look_at_machine();
}

/* ----------------------------------------------------------------------------------------------------- evicting -- */

/* As much as tenacity allows: up to 10 in steps of 50 us, then 15 % more each; 100 without end. */
static uint64_t time_limit_us(void)
{
    int64_t tenacity = OPTION_GET(option_tenacity);

    if (tenacity >= 100)
        return UINT64_MAX;
    if (tenacity <= 10)
        return (uint64_t)tenacity * 50;
    return (uint64_t)(500.0 * pow(1.15, (double)(tenacity - 10)));
}

static struct eviction_rule rule_of(int64_t policy)
{
    struct eviction_rule rule = {
        .measure = EVICTION_LEAST_RECENT,
        .expiring_only = (policy & POLICY_ALL_KEYS) == 0,
        .unlink = OPTION_IS(option_lazyfree_lazy_eviction),
        .times_deletions = latency_threshold() != 0,
        .samples = (unsigned)OPTION_GET(option_samples),
        .lfu = {(uint32_t)OPTION_GET(option_lfu_log_factor), (uint32_t)OPTION_GET(option_lfu_decay_time)},
    };

    if ((policy & POLICY_LFU) != 0)
        rule.measure = EVICTION_LEAST_FREQUENT;
    else if ((policy & POLICY_RANDOM) != 0)
        rule.measure = EVICTION_RANDOM;
    else if ((policy & POLICY_TTL) != 0)
        rule.measure = EVICTION_SHORTEST_TTL;
    return rule;
}

/* In a pause nothing changes, and a master decides for its replicas, as the source of an import does. */
static bool nothing_may_go(const struct store *store)
{
    const unsigned keeps = STORE_KEEPS_PAUSED | STORE_KEEPS_IMPORTING;

    return (atomic_load_explicit(&store->keeps_expired, memory_order_relaxed) & keeps) != 0 ||
           atomic_load(&limit_ignored);
}

/* Inside the gate. Frees `wanted` bytes, or says why not. */
static enum memory_room evict(struct worker *worker, uint64_t wanted)
{
    const struct eviction_rule rule = rule_of(OPTION_GET(option_maxmemory_policy));
    const uint64_t begin_us = clock_monotonic_us(), limit_us = time_limit_us();
    enum memory_room room = MEMORY_FINE;
    uint64_t freed = 0;

    worker_assert_inside(worker);
    if (of(worker)->measure != rule.measure || of(worker)->expiring_only != rule.expiring_only)
        of(worker)->pool.count = 0; /* its scores are of another policy */
    of(worker)->measure = rule.measure;
    of(worker)->expiring_only = rule.expiring_only;
    access_begin(&worker->run.access, run_time_now(worker), false);
    worker->run.access.effects = journal_is_on(&worker->server->journal) ? &worker->run.effects : NULL;
    for (unsigned step = 1; freed < wanted && !nothing_may_go(worker->server->store); step++) {
        size_t bytes = eviction_step(&worker->run.access, &of(worker)->pool, &rule);

        latency_add(LATENCY_EVICTION_DEL, (int64_t)(of(worker)->pool.delete_us / 1000));
        freed += bytes;
        if (bytes == 0) {
            room = background_pending(BACKGROUND_FREE) != 0 ? MEMORY_SHORT : MEMORY_NONE;
            break;
        }
        if (step % STEPS_A_LOOK == 0 && clock_monotonic_us() - begin_us >= limit_us) {
            room = MEMORY_SHORT;
            break;
        }
    }
    mem_thread_publish();
    latency_add(LATENCY_EVICTION_CYCLE, (int64_t)((clock_monotonic_us() - begin_us) / 1000));
    return room;
}

enum memory_room memory_make_room(struct worker *worker)
{
    uint64_t limit = atomic_load_explicit(&memory_limit, memory_order_relaxed);
    uint64_t counted, freeing;
    enum memory_room room;

    if (!memory_limit_is_reached())
        return MEMORY_FINE;
    worker_assert_outside(worker);
    output_pool_trim(loop_output_pool(worker->loop)); /* free blocks go before keys do */
    mem_thread_publish();
    freeing = lazyfree_pending_bytes();
    counted = memory_counted();
    if (counted <= limit)
        return MEMORY_FINE;
    counted -= MIN(counted, freeing);
    if (nothing_may_go(worker->server->store))
        return MEMORY_SHORT; /* nothing changes in a pause */
    if (counted > limit && OPTION_GET(option_maxmemory_policy) == POLICY_NO_EVICTION) {
        note_state(true);
        return MEMORY_NONE;
    }
    if (counted <= limit) {
        room = MEMORY_SHORT; /* enough is gone already, and about to be freed */
    } else if (!gate_enter(&worker->member)) {
        room = MEMORY_SHORT; /* the thread that is alone with the data ends soon */
    } else {
        room = loading_runs() ? MEMORY_SHORT : evict(worker, counted - limit);
        gate_leave(&worker->member);
        if (worker->has_deferred) /* the effects of evictions are sent before memory is checked again */
            worker_run_deferred(worker);
    }
    note_state(room != MEMORY_FINE);
    if (room == MEMORY_SHORT)
        loop_timer_start(worker->loop, &of(worker)->timer, TIMER_US, on_timer);
    return room;
}

void memory_look_for(struct client *client)
{
    client_assert_owned(client);
    client->flags &= ~(uint32_t)CLIENT_MEMORY_SHORT;
    if (memory_limit_is_reached() && memory_make_room(client->worker) == MEMORY_NONE)
        client->flags |= CLIENT_MEMORY_SHORT;
}

static void init(struct worker *worker)
{
    memset(of(worker), 0, sizeof(*of(worker)));
}

const struct lifecycle memory_limit_lifecycle = {
    .worker_init = init,
    .server_start = start,
    .server_sample = sample, /* force-eviction-percent */
};
