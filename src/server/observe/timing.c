#include "server/observe/timing.h"

#include "base/assert.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/panic.h"
#include "base/spinlock.h"
#include "base/thread.h"
#include "server/command/command.h"
#include "server/config/config.h"
#include "server/core/client.h"
#include "server/core/lifecycle.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/observe/command_log.h"
#include "server/observe/latency.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PERCENTS_MOST = 32, LISTENERS_MOST = 4 };

_Atomic uint64_t timing_attention = HISTOGRAM_MOST; /* global: see timing.h */

static _Atomic int wanted_by; /* atomic: relaxed; number of parties that want every command */
static void (*listeners[LISTENERS_MOST])(const struct request *request); /* const while there are workers */
static size_t listener_count;

static _Atomic int64_t option_slowlog_slower_than; /* global: option storage */
static _Atomic int64_t option_latency_threshold;   /* global: option storage */
static _Atomic int64_t option_latency_tracking;    /* global: option storage */

/* Changed at the gate; INFO is printed outside of it: hence the lock. */
static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY; held for copies only */
    double percents[PERCENTS_MOST] GUARDED_BY(lock);
    size_t count GUARDED_BY(lock);
    struct command_times **before GUARDED_BY(lock); /* sums at the last reset, by command id; NULL: never reset */
    uint32_t command_count GUARDED_BY(lock);        /* of `before`: the registry goes earlier than it */
} shared;

/* ----------------------------------------------------------------------------------------------------- options -- */

static void apply(void);

static const char *apply_thresholds(const struct option_row *row)
{
    gate_assert_alone();
    (void)row;
    apply();
    return NULL;
}

static bool refuse(char *error, size_t error_size, const char *text)
{
    snprintf(error, error_size, "%s", text);
    return false;
}

static bool set_percents(const struct option_row *row, const struct slice *words, size_t count, char *error,
                         size_t error_size)
{
    double percents[PERCENTS_MOST];
    size_t used = 0;

    (void)row;
    for (size_t i = 0; i < count; i++) {
        if (words[i].size == 0)
            continue;
        if (used == PERCENTS_MOST || !number_parse_double(words[i], &percents[used]))
            return refuse(error, error_size, "Invalid latency-tracking-info-percentiles parameters");
        if (!(percents[used] >= 0 && percents[used] <= 100))
            return refuse(error, error_size,
                          "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
        used++;
    }
    assert(used <= PERCENTS_MOST);
    spinlock_acquire(&shared.lock);
    memcpy(shared.percents, percents, used * sizeof(*percents));
    shared.count = used;
    spinlock_release(&shared.lock);
    return true;
}

static void get_percents(const struct option_row *row, struct buffer *buffer)
{
    const double *percents;
    size_t count = timing_percents(&percents);

    (void)row;
    for (size_t i = 0; i < count; i++) {
        char text[NUMBER_DOUBLE_SPACE];

        number_format_double_short(text, percents[i]);
        buffer_printf(buffer, "%s%s", i == 0 ? "" : " ", text);
    }
}

static const struct option_row timing_options[] = {
    ROW_INT("slowlog-log-slower-than", &option_slowlog_slower_than, 10000, -1, INT64_MAX, OPTION_MUTABLE,
            "Microseconds from which on a command enters the slow log; -1: never.", .apply = apply_thresholds,
            .alias = "commandlog-execution-slower-than"),
    ROW_INT("latency-monitor-threshold", &option_latency_threshold, 0, 0, INT64_MAX, OPTION_MUTABLE,
            "Milliseconds from which on LATENCY records an event; 0: never.", .apply = apply_thresholds),
    ROW_BOOL("latency-tracking", &option_latency_tracking, 1, OPTION_MUTABLE,
             "Keep histograms of the times of commands.", .apply = apply_thresholds),
    ROW_SPECIAL("latency-tracking-info-percentiles", set_percents, get_percents, "50 99 99.9",
                OPTION_MUTABLE | OPTION_MULTI_ARG, "Percentiles that INFO latencystats reports."),
};

void timing_setup(void)
{
    gate_assert_main_alone();
    tick_setup();
    spinlock_init(&shared.lock, LOCK_REGISTRY);
    command_log_setup();
    latency_setup();
    config_add_rows(timing_options, countof(timing_options));
    config_on_reset_stat(timing_reset);
}

/* After a change of what timing_attention depends on, and once before the workers start. Any thread. */
static void apply(void)
{
    int64_t slower_than, latency_ms;
    uint64_t ns = UINT64_MAX;

    spinlock_acquire(&shared.lock); /* MONITOR comes and goes in any thread */
    slower_than = OPTION_GET(option_slowlog_slower_than);
    latency_ms = OPTION_GET(option_latency_threshold);
    if (slower_than >= 0 && (uint64_t)slower_than < UINT64_MAX / 1000)
        ns = (uint64_t)slower_than * 1000;
    if (latency_ms > 0 && (uint64_t)latency_ms < UINT64_MAX / 1000000)
        ns = MIN(ns, (uint64_t)latency_ms * 1000000);
    if (atomic_load_explicit(&wanted_by, memory_order_relaxed) != 0 || !timing_is_tracking())
        ns = 0;
    latency_set_threshold(latency_ms);
    atomic_store_explicit(&timing_attention, MIN(tick_from_ns(ns), HISTOGRAM_MOST), memory_order_relaxed);
    spinlock_release(&shared.lock);
}

bool timing_is_tracking(void)
{
    return OPTION_IS(option_latency_tracking);
}

size_t timing_percents(const double **percents)
{
    static _Thread_local double copy[PERCENTS_MOST];
    size_t count;

    spinlock_acquire(&shared.lock);
    count = shared.count;
    assert(count <= PERCENTS_MOST);
    memcpy(copy, shared.percents, count * sizeof(*copy));
    spinlock_release(&shared.lock);
    *percents = copy;
    return count;
}

/* ---------------------------------------------------------------------------------------------------- counting -- */

static size_t times_bytes(void)
{
    return command_count() * sizeof(struct command_times);
}

static struct command_times *create_times(void)
{
    void *times = mmap(NULL, times_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert(times_bytes() != 0); /* the registry is there */
    if (times == MAP_FAILED)
        panic("Out of memory mapping %zu bytes for the times of commands", times_bytes());
    (void)madvise(times, times_bytes(), MADV_NOHUGEPAGE); /* a huge page would hold all of it at once */
    return times;
}

static void destroy_times(struct command_times **times)
{
    if (*times != NULL)
        munmap(*times, times_bytes());
    *times = NULL;
}

/* Looks at the first page only: all others may never have been touched. A call of no tick is in the first bucket. */
static bool was_called(const struct command_times *times)
{
    return histogram_sum(&times->ticks) != 0 || histogram_count_upto(&times->ticks, 0) != 0 ||
           atomic_load_explicit(&times->untracked, memory_order_relaxed) != 0;
}

void timing_tell(const struct request *request, uint64_t us)
{
    const struct command *command = request->command;
    int64_t slower_than = OPTION_GET(option_slowlog_slower_than);

    worker_assert_self(request->worker);
    latency_add((command->flags & COMMAND_FAST) != 0 ? LATENCY_FAST_COMMAND : LATENCY_COMMAND, (int64_t)(us / 1000));
    if (slower_than >= 0 && us >= (uint64_t)slower_than && (command->flags & COMMAND_SKIP_SLOWLOG) == 0)
        command_log_add(COMMAND_LOG_SLOW, request, us);
}

void timing_attend(const struct request *request, uint64_t span)
{
    struct command_times *times = &request->worker->stats.times[request->command->id];

    worker_assert_self(request->worker);
    span = (int64_t)span < 0 ? 0 : MIN(span, HISTOGRAM_MOST);
    if (timing_is_tracking()) {
        histogram_add(&times->ticks, span);
    } else {
        counter_add(&times->ticks.sum, span);
        counter_add(&times->untracked, 1);
    }
    if ((request->client->flags & CLIENT_BLOCKED) == 0 || request->client->rendezvous_count != 0) /* it has ended */
        timing_tell(request, tick_to_ns(span) / 1000);
    if (atomic_load_explicit(&wanted_by, memory_order_relaxed) != 0) {
        for (size_t i = 0; i < listener_count; i++)
            listeners[i](request);
    }
}

void timing_on_command(void (*note)(const struct request *request))
{
    gate_assert_main_alone();
    assert(listener_count < LISTENERS_MOST);
    for (size_t i = 0; i < listener_count; i++) {
        if (listeners[i] == note)
            return;
    }
    listeners[listener_count++] = note;
}

void timing_want_commands(int change)
{
    int before = atomic_fetch_add_explicit(&wanted_by, change, memory_order_relaxed);

    assert(change == 1 || change == -1);
    assert(before + change >= 0);
    apply();
}

void timing_note_waiting(struct worker *worker, const struct command *command)
{
    worker_assert_self(worker);
    counter_add(&worker->stats.times[command->id].untracked, 1);
}

void timing_note_waited(struct worker *worker, const struct command *command, uint64_t span, bool failed)
{
    struct command_times *times = &worker->stats.times[command->id];

    worker_assert_self(worker);
    histogram_add(&times->ticks, span);
    counter_add(&times->untracked, UINT64_MAX); /* one less, perhaps of another worker's */
    if (failed)
        counter_add(&worker->stats.failed_calls[command->id], 1);
}

/* --------------------------------------------------------------------------------------------------- summing up -- */

static struct command_times *sum_of_workers(uint32_t command_id)
{
    const struct server *server = server_instance();
    struct command_times *sum = NULL;

    for (unsigned i = 0; i < server->worker_count; i++) {
        const struct command_times *times = &server->workers[i].stats.times[command_id];

        if (!was_called(times))
            continue;
        if (sum == NULL)
            sum = mem_alloc_zero(sizeof(*sum));
        histogram_merge(&sum->ticks, &times->ticks);
        counter_add(&sum->untracked, atomic_load_explicit(&times->untracked, memory_order_relaxed));
    }
    return sum;
}

static void subtract(struct command_times *times, const struct command_times *before)
{
    uint64_t now = atomic_load_explicit(&times->untracked, memory_order_relaxed);
    uint64_t earlier = atomic_load_explicit(&before->untracked, memory_order_relaxed);

    histogram_subtract(&times->ticks, &before->ticks);
    atomic_store_explicit(&times->untracked, now > earlier ? now - earlier : 0, memory_order_relaxed);
}

struct command_times *timing_collect(uint32_t command_id)
{
    struct command_times *times = sum_of_workers(command_id);

    assert(command_id < command_count());
    if (times == NULL)
        return NULL;
    spinlock_acquire(&shared.lock);
    if (shared.before != NULL && shared.before[command_id] != NULL)
        subtract(times, shared.before[command_id]);
    spinlock_release(&shared.lock);
    if (timing_calls(times) == 0) {
        mem_free(times);
        return NULL;
    }
    return times;
}

uint64_t timing_calls(const struct command_times *times)
{
    uint64_t calls = histogram_count(&times->ticks) + atomic_load_explicit(&times->untracked, memory_order_relaxed);

    /* The counts of two workers for the same call are read at different moments. */
    return (int64_t)calls < 0 ? 0 : calls;
}

uint64_t timing_usec(const struct command_times *times)
{
    return tick_to_ns(histogram_sum(&times->ticks)) / 1000;
}

static void forget(struct command_times **before, uint32_t count)
{
    assert(before == NULL || count != 0);
    for (uint32_t id = 0; before != NULL && id < count; id++)
        mem_free(before[id]);
    mem_free(before);
}

void timing_reset(void)
{
    struct command_times **before = mem_alloc_zero((command_count() + 1) * sizeof(*before)), **old;

    gate_assert_alone();
    for (uint32_t id = 0; id < command_count(); id++)
        before[id] = sum_of_workers(id);
    spinlock_acquire(&shared.lock);
    old = shared.before;
    shared.before = before;
    shared.command_count = command_count();
    spinlock_release(&shared.lock);
    forget(old, command_count());
}

void timing_teardown(void)
{
    gate_assert_main_alone();
    forget(shared.before, shared.command_count);
    shared.before = NULL;
    command_log_teardown();
}

static bool start(struct server *server)
{
    thread_assert_main();
    (void)server;
    apply();
    command_log_begin();
    return true;
}

static void init(struct worker *worker)
{
    assert(worker->stats.times == NULL);
    worker->stats.times = create_times();
}

static void fini(struct worker *worker)
{
    destroy_times(&worker->stats.times);
}

const struct lifecycle timing_lifecycle = {
    .server_start = start,
    .worker_init = init,
    .worker_fini = fini,
};
