#include "server/upkeep/journal_limits.h"

#include "base/assert.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/core/server.h"
#include "server/run/pause.h"

#include <errno.h>
#include <string.h>

#define BACKLOG_LEAST_BYTES 16384               /* less is taken as this, as by the rest of the family */
#define SPILL_RESERVE_BYTES (UINT64_C(1) << 30) /* the file is not for the last of a disk */
#define CROWD_LEAST_BYTES (UINT64_C(64) << 20)
#define QUIET_US (UINT64_C(60) * 1000 * 1000)

static _Atomic int64_t option_backlog_size, option_memory_limit, option_spill_limit; /* global: option storage */
static _Atomic bool tending;                                 /* global: a background thread is at it, or will be */
static _Atomic bool file_failed;                             /* global: the last time; so that it is logged once */
static bool waits_for_file;                                  /* global: worker 0's */
static uint64_t waited_us;                                   /* global: worker 0's; until when it waited; 0: never */
static enum lag { LAG_NONE, LAG_AOF, LAG_REPLICA } told_lag; /* global: worker 0's */

static const char *apply(const struct option_row *row)
{
    struct server *server = server_instance();

    (void)row;
    if (server == NULL)
        return NULL;
    gate_assert_alone();
    if (OPTION_GET(option_backlog_size) < BACKLOG_LEAST_BYTES)
        atomic_store_explicit(&option_backlog_size, BACKLOG_LEAST_BYTES, memory_order_relaxed);
    journal_set_retention(&server->journal, OPTION_GET_U64(option_backlog_size));
    journal_set_spill_limit(&server->journal, OPTION_GET_U64(option_spill_limit), SPILL_RESERVE_BYTES);
    /* The backlog stays in memory; the limit is for the part beyond it. */
    journal_set_memory_limit(&server->journal,
                             OPTION_GET_U64(option_memory_limit) == 0
                                 ? 0
                                 : OPTION_GET_U64(option_memory_limit) + OPTION_GET_U64(option_backlog_size));
    if (worker_self() != NULL)
        worker_at_turn_end(worker_self()); /* it may be too long by now */
    return NULL;
}

static const struct option_row rows[] = {
    ROW_MEMORY("repl-backlog-size", &option_backlog_size, 1 << 20, 1, INT64_MAX, OPTION_MUTABLE,
               "Bytes of the journal that are kept for replicas that return.", .apply = apply),
    ROW_MEMORY("journal-memory-limit", &option_memory_limit, 64 << 20, 0, INT64_MAX / 2, OPTION_MUTABLE,
               "Bytes of the journal in memory beyond which those for slow replicas go to a file; 0: never.",
               .apply = apply),
    ROW_MEMORY("journal-spill-limit", &option_spill_limit, INT64_C(10) << 30, 0, INT64_MAX, OPTION_MUTABLE,
               "Bytes of that file beyond which the slowest replica loses its place; 0: no limit.", .apply = apply),
};

uint64_t journal_limits_memory(void)
{
    return (uint64_t)OPTION_GET(option_memory_limit);
}

void journal_limits_setup(void)
{
    thread_assert_main();
    config_add_rows(rows, countof(rows));
}

static bool start(struct server *server)
{
    struct journal *journal = &server->journal;

    journal->on_lag = pause_for_lag;
    journal->on_lag_over = pause_for_over;
    (void)apply(NULL);
    return true;
}

static void tend(void *argument)
{
    bool good = journal_tend(argument);

    assert(atomic_load(&tending) && worker_self() == NULL);
    if (!good && !atomic_exchange(&file_failed, true))
        log_warning("Can't spill replica backlog: %s. Slow replicas need a full resync.", strerror(errno));
    if (good && atomic_exchange(&file_failed, false))
        log_notice("Spilling replica backlog works again.");
    atomic_store(&tending, false);
}

static void begin_to_tend(struct journal *journal)
{
    if (!atomic_exchange(&tending, true))
        background_submit(BACKGROUND_OTHER, tend, journal);
}

/* Commands that extended the journal are followed by the end of their turn. */
static void look(struct worker *worker)
{
    struct journal *journal = &worker->server->journal;

    worker_assert_self(worker);
    if (LIKELY(!journal_wants_tending(journal)))
        return;
    worker_at_turn_end(worker); /* of the next turn, too: one run may not be enough */
    begin_to_tend(journal);
}

static enum lag lag_now(const struct journal *journal)
{
    const unsigned flags = atomic_load_explicit(&journal->lag_flags, memory_order_relaxed);

    if (LIKELY(!atomic_load_explicit(&journal->is_lagging, memory_order_relaxed)) ||
        (flags & JOURNAL_READER_PACED) != 0)
        return LAG_NONE;
    return (flags & JOURNAL_READER_PLACE) != 0 ? LAG_REPLICA : LAG_AOF;
}

static void log_lag(enum lag lag)
{
    if (lag == LAG_AOF)
        log_warning("AOF lag exceeds aof-lag-limit: the disk is too slow. Writes are paused until half of the lag is "
                    "written.");
    else if (lag == LAG_REPLICA)
        log_warning("The lag of a replica exceeds repl-backpressure-limit. Writes are paused until it has applied half "
                    "of the lag.");
    else if (told_lag == LAG_AOF)
        log_notice("AOF lag is below half of aof-lag-limit: writes continue.");
    else
        log_notice("No replica's lag exceeds half of repl-backpressure-limit: writes continue.");
}

/* How much may wait in memory for the file, beyond what may stay there. */
static uint64_t crowd_most(void)
{
    return MAX(OPTION_GET_U64(option_memory_limit), CROWD_LEAST_BYTES);
}

/* Writers that are faster than the disk would fill the memory with what slow replicas have not read. */
static void hold_for_file(struct server *server)
{
    const bool is_crowded = journal_is_crowded(&server->journal, waits_for_file ? crowd_most() / 2 : crowd_most());
    const uint64_t now_us = clock_monotonic_us();

    if (is_crowded)
        begin_to_tend(&server->journal); /* no writer asks for it, and what failed may work now */
    if (is_crowded == waits_for_file)
        return;
    waits_for_file = is_crowded;
    pause_for(PAUSE_FOR_FILE, is_crowded);
    if (!is_crowded) {
        waited_us = now_us;
        pause_for_over();
    } else if (waited_us == 0 || now_us - waited_us > QUIET_US) {
        log_warning("The disk is too slow for what slow replicas have not read: more than journal-memory-limit waits "
                    "for the journal's file. Writes wait for the disk now and then.");
    }
}

/* Logs now and then that clients wait. */
static void sample(struct server *server)
{
    const enum lag lag = lag_now(&server->journal);

    look(&server->workers[0]); /* readers come and go in any thread */
    hold_for_file(server);
    if (lag == told_lag)
        return;
    log_lag(lag);
    told_lag = lag;
}

const struct lifecycle journal_limits_lifecycle = {
    .server_start = start,
    .server_sample = sample,
    .worker_turn_end = look,
};
