/* Each worker finds the heavy keys among its own commands (base/heavy_hitters.h), with room for many more than are
 * wanted; the lists are merged when somebody asks. What a key is said to have is the part of its sum that is certain,
 * so a key that came last is not listed with the sum of those that it displaced.
 *
 * Session: none -> active -> ended -> none. It begins and is forgotten in an exclusive section, where no worker has
 * keys at hand; it may end in any thread, as the time is over. A command with several keys gives each an equal part. */
#include "server/observe/hotkeys.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/heavy_hitters.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "base/thread.h"
#include "base/tick.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/core/stats.h"
#include "server/core/worker.h"
#include "server/observe/command_log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { ROOM_PER_WANTED = 16 };

struct share {
    _Atomic uint64_t ticks, bytes; /* atomic: relaxed; the worker's thread adds. Of all commands in sessions, ever. */
    uint64_t seen;                 /* owner: the worker's thread, within the gate; commands with keys */
    /* Owner: the worker's thread, within the gate; other threads: in an exclusive section. NULL: not wanted. */
    struct heavy_hitters *keys[HOTKEYS_METRICS];
};

/* Sums that only grow; a session is the difference of two. */
struct sums {
    uint64_t monotonic_us;
    uint64_t ticks, bytes;
    uint64_t user_us, system_us;
    uint64_t net_bytes;
};

static struct {
    /* const while there are workers */
    struct share *shares; /* by index of the worker */
    unsigned share_count;

    _Atomic bool is_active;      /* atomic: relaxed; changed with the lock held */
    _Atomic uint64_t start_tick; /* atomic: relaxed */
    _Atomic uint64_t sampling;   /* atomic: relaxed */

    struct spinlock lock; /* rank LOCK_REGISTRY */
    bool is_there GUARDED_BY(lock);
    struct hotkeys_plan plan GUARDED_BY(lock);
    int64_t start_wall_ms GUARDED_BY(lock);
    struct sums before, after GUARDED_BY(lock); /* after: if it has ended */
} hotkeys;

void hotkeys_setup(void)
{
    gate_assert_main_alone();
    spinlock_init(&hotkeys.lock, LOCK_REGISTRY);
}

bool hotkeys_is_active(void)
{
    return atomic_load_explicit(&hotkeys.is_active, memory_order_relaxed);
}

/* ------------------------------------------------------------------------------------------------------- noting -- */

static void note_keys(struct share *share, const struct request *request, uint64_t ticks, uint64_t bytes)
{
    const uint64_t amounts[HOTKEYS_METRICS] =
        {[HOTKEYS_CPU] = ticks / request->key_count, [HOTKEYS_NET] = bytes / request->key_count};

    worker_assert_inside(request->worker);
    if (share->seen++ % atomic_load_explicit(&hotkeys.sampling, memory_order_relaxed) != 0)
        return;
    for (uint32_t i = 0; i < request->key_count; i++) {
        const struct key *key = &request->keys[i];

        for (unsigned metric = 0; metric < HOTKEYS_METRICS; metric++) {
            if (share->keys[metric] != NULL && key->name.size <= HOTKEYS_NAME_BYTES_MOST)
                heavy_hitters_add(share->keys[metric], key->name, key->hash, amounts[metric]);
        }
    }
}

void hotkeys_note(const struct request *request, uint64_t start, uint64_t end, uint64_t bytes)
{
    struct share *share = &hotkeys.shares[request->worker->index];
    const uint64_t ticks = (int64_t)(end - start) < 0 ? 0 : end - start;

    worker_assert_self(request->worker);
    /* EXEC has no part of its own: its commands come here one by one. */
    if (!hotkeys_is_active() || request->command->row->access == ACCESS_TRANSACTION ||
        (int64_t)(start - atomic_load_explicit(&hotkeys.start_tick, memory_order_relaxed)) < 0)
        return;
    counter_add(&share->ticks, ticks);
    counter_add(&share->bytes, bytes);
    if (request->key_count != 0 && (request->command->flags & COMMAND_PUBSUB) == 0) /* channels are no keys */
        note_keys(share, request, ticks, bytes);
}

/* ---------------------------------------------------------------------------------------------------- sessions -- */

static uint64_t us_of(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static struct sums sums_now(void)
{
    struct sums sums = {.monotonic_us = clock_monotonic_us()};
    struct server_stats *stats = mem_alloc(sizeof(*stats));
    struct rusage usage;

    for (unsigned i = 0; i < hotkeys.share_count; i++) {
        sums.ticks += atomic_load_explicit(&hotkeys.shares[i].ticks, memory_order_relaxed);
        sums.bytes += atomic_load_explicit(&hotkeys.shares[i].bytes, memory_order_relaxed);
    }
    getrusage(RUSAGE_SELF, &usage);
    sums.user_us = us_of(usage.ru_utime);
    sums.system_us = us_of(usage.ru_stime);
    server_stats_collect_sums(stats);
    sums.net_bytes = stats->net_input_bytes + stats->net_output_bytes;
    mem_free(stats);
    return sums;
}

/* Ends the session, if it is active, and its time is over or `always`. Any thread. */
static bool end_session(bool always)
{
    struct sums now;
    bool ends;

    if (!hotkeys_is_active())
        return false;
    now = sums_now();
    spinlock_acquire(&hotkeys.lock);
    ends = hotkeys_is_active() &&
           (always || (hotkeys.plan.seconds != 0 &&
                       now.monotonic_us - hotkeys.before.monotonic_us >= (uint64_t)hotkeys.plan.seconds * 1000000));
    if (ends) {
        hotkeys.after = now;
        atomic_store_explicit(&hotkeys.is_active, false, memory_order_relaxed);
    }
    spinlock_release(&hotkeys.lock);
    if (ends)
        command_log_want_sizes(-1);
    return ends;
}

static void forget_keys(void)
{
    for (unsigned i = 0; i < hotkeys.share_count; i++) {
        for (unsigned metric = 0; metric < HOTKEYS_METRICS; metric++)
            heavy_hitters_destroy(&hotkeys.shares[i].keys[metric]);
    }
}

static void create_keys(const struct hotkeys_plan *plan)
{
    for (unsigned i = 0; i < hotkeys.share_count; i++) {
        hotkeys.shares[i].seen = 0;
        for (unsigned metric = 0; metric < HOTKEYS_METRICS; metric++) {
            if (plan->wants[metric])
                hotkeys.shares[i].keys[metric] = heavy_hitters_create(plan->count * ROOM_PER_WANTED);
        }
    }
}

bool hotkeys_start(const struct hotkeys_plan *plan)
{
    const struct sums now = sums_now();

    gate_assert_alone();
    assert(plan->count != 0 && plan->count <= HOTKEYS_COUNT_MOST && plan->sampling != 0);
    (void)end_session(false);
    if (hotkeys_is_active())
        return false;
    forget_keys();
    create_keys(plan);
    spinlock_acquire(&hotkeys.lock);
    hotkeys.is_there = true;
    hotkeys.plan = *plan;
    hotkeys.start_wall_ms = clock_wall_us() / 1000;
    hotkeys.before = now;
    atomic_store_explicit(&hotkeys.sampling, plan->sampling, memory_order_relaxed);
    atomic_store_explicit(&hotkeys.start_tick, tick_now(), memory_order_relaxed);
    atomic_store_explicit(&hotkeys.is_active, true, memory_order_relaxed);
    spinlock_release(&hotkeys.lock);
    command_log_want_sizes(1);
    return true;
}

bool hotkeys_stop(void)
{
    gate_assert_alone();
    (void)end_session(false);
    return end_session(true);
}

bool hotkeys_reset(void)
{
    gate_assert_alone();
    (void)end_session(false);
    if (hotkeys_is_active())
        return false;
    forget_keys();
    spinlock_acquire(&hotkeys.lock);
    hotkeys.is_there = false;
    spinlock_release(&hotkeys.lock);
    return true;
}

/* ---------------------------------------------------------------------------------------------- what it found -- */

bool hotkeys_report(struct hotkeys_report *report)
{
    const struct sums now = sums_now();
    struct sums before, after;
    bool is_there;

    (void)end_session(false);
    spinlock_acquire(&hotkeys.lock);
    is_there = hotkeys.is_there;
    before = hotkeys.before;
    *report = (struct hotkeys_report){.plan = hotkeys.plan,
                                      .is_active = is_there && hotkeys_is_active(),
                                      .start_wall_ms = hotkeys.start_wall_ms};
    after = report->is_active ? now : hotkeys.after;
    spinlock_release(&hotkeys.lock);
    if (!is_there)
        return false;
    report->duration_ms = (after.monotonic_us - before.monotonic_us) / 1000;
    report->commands_us = tick_to_ns(after.ticks - before.ticks) / 1000;
    report->commands_bytes = after.bytes - before.bytes;
    report->user_ms = (after.user_us - before.user_us) / 1000;
    report->system_ms = (after.system_us - before.system_us) / 1000;
    report->net_bytes = after.net_bytes - before.net_bytes;
    return true;
}

struct found {
    struct slice name;
    uint64_t hash, amount;
};

static int compare_names(const void *first, const void *second)
{
    const struct found *a = first, *b = second;

    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return slice_compare(a->name, b->name);
}

static int compare_amounts(const void *first, const void *second)
{
    const struct found *a = first, *b = second;

    if (a->amount != b->amount)
        return a->amount > b->amount ? -1 : 1;
    return slice_compare(a->name, b->name);
}

/* Those of all workers, each name once; the caller frees the array. */
static struct found *gather(enum hotkeys_metric metric, size_t *count)
{
    struct found *found;
    size_t most = 1, kept = 0, total = 0;

    for (unsigned i = 0; i < hotkeys.share_count; i++)
        most += hotkeys.shares[i].keys[metric] != NULL ? heavy_hitters_count(hotkeys.shares[i].keys[metric]) : 0;
    found = mem_alloc(most * sizeof(*found));
    for (unsigned i = 0; i < hotkeys.share_count; i++) {
        const struct heavy_hitters *keys = hotkeys.shares[i].keys[metric];

        for (uint32_t k = 0; keys != NULL && k < heavy_hitters_count(keys); k++) {
            const struct heavy_hitter hitter = heavy_hitters_at(keys, k);

            found[total++] = (struct found){hitter.name, hitter.hash, hitter.sum - hitter.error};
        }
    }
    qsort(found, total, sizeof(*found), compare_names);
    for (size_t i = 0; i < total; i++) {
        if (kept != 0 && compare_names(&found[kept - 1], &found[i]) == 0)
            found[kept - 1].amount += found[i].amount;
        else
            found[kept++] = found[i];
    }
    *count = kept;
    return found;
}

size_t hotkeys_list(enum hotkeys_metric metric, struct hotkeys_key *keys)
{
    struct found *found;
    size_t count;

    gate_assert_alone();
    found = gather(metric, &count);
    qsort(found, count, sizeof(*found), compare_amounts);
    spinlock_acquire(&hotkeys.lock);
    count = MIN(count, (size_t)hotkeys.plan.count);
    spinlock_release(&hotkeys.lock);
    for (size_t i = 0; i < count; i++)
        keys[i] = (struct hotkeys_key){found[i].name,
                                       metric == HOTKEYS_CPU ? tick_to_ns(found[i].amount) : found[i].amount};
    mem_free(found);
    return count;
}

/* ------------------------------------------------------------------------------------------------------- hooks -- */

static bool start(struct server *server)
{
    thread_assert_main();
    hotkeys.share_count = server->worker_count;
    hotkeys.shares = mem_alloc_zero(server->worker_count * sizeof(*hotkeys.shares));
    return true;
}

static void sample(struct server *server)
{
    (void)server;
    if (hotkeys_is_active())
        (void)end_session(false);
}

static void end(struct server *server)
{
    (void)server;
    forget_keys();
    mem_free(hotkeys.shares);
    hotkeys.shares = NULL;
    hotkeys.share_count = 0;
}

const struct lifecycle hotkeys_lifecycle = {
    .server_start = start,
    .server_sample = sample,
    .server_end = end,
};

/* Zeros: there is no session. */
static void take(void *picture, const struct info_moment *moment)
{
    (void)moment;
    if (!hotkeys_report(picture))
        memset(picture, 0, sizeof(struct hotkeys_report));
}

static const struct info_source source = {sizeof(struct hotkeys_report), .take = take};

const struct info_row hotkeys_info[] = {
    INFO_FIELD("hotkeys_tracking_active", &source, struct hotkeys_report, is_active),
    INFO_FIELD("hotkeys_sample_ratio", &source, struct hotkeys_report, plan.sampling),
    INFO_FIELD("hotkeys_collection_start_time_unix_ms", &source, struct hotkeys_report, start_wall_ms),
    INFO_FIELD("hotkeys_collection_duration_ms", &source, struct hotkeys_report, duration_ms),
    INFO_FIELD("hotkeys_all_commands_us", &source, struct hotkeys_report, commands_us),
    INFO_FIELD("hotkeys_all_commands_net_bytes", &source, struct hotkeys_report, commands_bytes),
    {0},
};
