#include "active/window_cycle.h"

#include "active/node.h"
#include "active/options.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "server/command/operation.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/loading.h"
#include "server/durable/value_words.h"
#include "server/run/dispatch.h"
#include "store/window.h"

enum {
    PATIENT_US = 20 * 1000 * 1000, /* so long a key that is being written may stay dirty */
    SECOND_US = 1000 * 1000,
    SETTLE_AT_ONCE = 256, /* records, with the stripe held */
    GIVE_UP_STEPS = 16,   /* in how many steps of time the oldest are looked for */
    JOIN_AGAIN = 3,       /* times, before anything is given up */
    JOIN_AGE_MS = 2000,   /* of additions that are joined as long as there is room */
    WAIT_MOST = 8         /* slices, for stripes that are busy, before anything is given up */
};

static struct {
    uint32_t stripe;           /* worker 0's: where the next slice begins */
    _Atomic uint64_t repaired; /* atomic: relaxed */
    uint64_t repaired_before;  /* worker 0's: when dirty keys were there last and none before */
    bool has_dirty;            /* worker 0's */
    bool is_over;              /* worker 0's: something was given up in the last slice: it was logged */
    unsigned waited;           /* likewise: slices for stripes that were busy */
    uint64_t quiet_before;     /* likewise, as all below: what was written at or behind this stamp stays dirty */
    uint64_t dirty_us;         /* since when keys are dirty; 0: none is */
    uint64_t repair_us;        /* when repairs were counted last */
    uint64_t repair_credit;    /* millionths of keys that active-repair-rate allows now */
    struct growth {            /* worker 0's, or of the thread that loads and owns the gate: window_cycle_bound */
        uint64_t left_bytes;   /* behind the last slice */
        uint64_t last_bytes;   /* from the slice before to the last one */
        uint64_t bytes; /* from slice to slice, for a while: what comes at once (a file, a snapshot) does not count */
    } lists, tombstones;
} cycle; /* global: of the one window */

uint64_t window_cycle_repaired(void)
{
    return atomic_load_explicit(&cycle.repaired, memory_order_relaxed);
}

/* Worker 0, inside of the gate. A stripe that is busy is left for the next slice. Returns how many are. */
static uint32_t each_stripe(struct worker *worker, bool (*wanted)(const struct store *store, uint32_t stripe),
                            void (*visit)(struct worker *worker, uint32_t stripe, void *context), void *context,
                            uint64_t until_us)
{
    struct access *access = &worker->run.access;
    const uint32_t count = worker->server->store->stripe_mask + 1;
    uint32_t left = 0;

    worker_assert_inside(worker);
    for (uint32_t i = 0; i < count && clock_monotonic_us() < until_us; i++) {
        const uint32_t stripe = (cycle.stripe + i) % count;
        uint32_t busy;

        if (!wanted(worker->server->store, stripe))
            continue;
        if (!access_lock(access, &stripe, 1, &busy)) {
            left++;
            continue;
        }
        visit(worker, stripe, context);
        access_unlock(access, &stripe, 1);
    }
    return left;
}

static void settle(struct worker *worker, uint32_t stripe, void *context)
{
    (void)context;
    if (!window_settle(&worker->run.access, stripe, SETTLE_AT_ONCE))
        cycle.stripe = stripe + 1;
}

/* ------------------------------------------------------------------------------------------------------- bounds -- */

static bool has_any(const struct store *store, uint32_t stripe)
{
    return window_oldest(store, stripe) != 0;
}

struct giving_up {
    uint64_t stamp;
    bool tombstones;
    uint64_t count;
};

static void give_up(struct worker *worker, uint32_t stripe, void *context)
{
    struct giving_up *giving = context;

    if (giving->tombstones)
        giving->count += window_give_up_tombstones(&worker->run.access, stripe, giving->stamp);
    else
        giving->count += window_give_up_lists(&worker->run.access, stripe, giving->stamp);
}

static uint64_t list_bytes(const struct store *store)
{
    struct window_totals totals;

    window_totals(store, &totals);
    return totals.bytes - MIN(totals.bytes, totals.tombstone_bytes);
}

static uint64_t tombstone_bytes(const struct store *store)
{
    struct window_totals totals;

    window_totals(store, &totals);
    return totals.tombstone_bytes;
}

static void note_growth(struct growth *growth, uint64_t bytes)
{
    const uint64_t now_bytes = bytes - MIN(bytes, growth->left_bytes);

    growth->bytes = MAX(MIN(growth->last_bytes, now_bytes), growth->bytes / 2);
    growth->last_bytes = now_bytes;
}

/* What a limit lets stay behind this slice: with what comes until the next one they do not take more. */
static uint64_t room_of(const struct growth *growth, uint64_t limit)
{
    return limit - MIN(growth->bytes, limit / 2);
}

static uint64_t room_of_lists(void)
{
    return room_of(&cycle.lists, OPTION_GET_U64(option_active_window_size));
}

static void put_noted(struct worker *worker, uint32_t stripe, void *context)
{
    (void)context;
    window_put_noted(&worker->run.access, stripe);
}

static void join(struct worker *worker, uint32_t stripe, void *context)
{
    window_join(&worker->run.access, stripe, *(const uint64_t *)context);
}

/* The fuller it is the more is joined, and at once. Returns how many stripes were busy. */
static uint32_t join_some(struct worker *worker, uint64_t newest,
                          bool (*wanted)(const struct store *store, uint32_t stripe))
{
    const uint64_t limit = room_of_lists(), bytes = list_bytes(worker->server->store);
    uint64_t end_us = clock_monotonic_us() + WINDOW_CYCLE_SLICE_US;
    uint64_t until = newest - MIN(newest, (uint64_t)JOIN_AGE_MS << MERGE_COUNTER_BITS);
    uint32_t busy;

    if (LIKELY(bytes <= limit / 2))
        return 0;
    if (bytes > limit / 4 * 3) {
        until = newest;
        end_us = bytes > limit ? UINT64_MAX : end_us + 3 * (uint64_t)WINDOW_CYCLE_SLICE_US;
    }
    busy = each_stripe(worker, wanted, join, &until, end_us);
    if (window_is_wasteful(worker->server->store))
        busy += each_stripe(worker, window_has_noted, put_noted, NULL, end_us);
    return busy;
}

/* Whether there is room, or all was done that gives some without a loss. */
static bool join_lists(struct worker *worker, uint64_t newest)
{
    const uint64_t limit = room_of_lists();
    uint32_t busy = join_some(worker, newest, window_has_grown);

    /* Noted steps of which half are records take more room than before, and others come meanwhile. */
    for (unsigned i = 0; i < JOIN_AGAIN && list_bytes(worker->server->store) > limit; i++)
        busy = join_some(worker, newest, window_may_join);
    return busy == 0 || list_bytes(worker->server->store) <= limit;
}

static bool is_over(const struct store *store, bool tombstones)
{
    if (tombstones)
        return tombstone_bytes(store) > room_of(&cycle.tombstones, OPTION_GET_U64(option_active_tombstones_limit));
    return list_bytes(store) > room_of_lists();
}

/* Oldest first: by stamp, in steps from the oldest one to now. */
static uint64_t bound(struct worker *worker, bool tombstones, uint64_t newest)
{
    const struct store *store = worker->server->store;
    struct giving_up giving = {.tombstones = tombstones};
    uint64_t oldest = UINT64_MAX;

    if (!is_over(store, tombstones))
        return 0;
    if (!tombstones && window_oldest_noted(store) != 0)
        oldest = window_oldest_noted(store);
    for (uint32_t i = 0; i <= store->stripe_mask; i++) {
        if (window_oldest(store, i) != 0)
            oldest = MIN(oldest, window_oldest(store, i));
    }
    newest = MAX(newest, oldest);
    for (uint64_t step = 1; step <= GIVE_UP_STEPS && is_over(store, tombstones); step++) {
        giving.stamp = oldest + (newest - oldest) / GIVE_UP_STEPS * step;
        if (!tombstones)
            giving.count += window_give_up_noted(&worker->run.access, giving.stamp);
        each_stripe(worker, has_any, give_up, &giving, UINT64_MAX);
    }
    return giving.count;
}

static void keep_bounds(struct worker *worker, uint64_t newest)
{
    const struct store *store = worker->server->store;
    uint64_t lists = 0, tombstones;

    note_growth(&cycle.lists, list_bytes(store));
    note_growth(&cycle.tombstones, tombstone_bytes(store));
    /* Steps of a busy stripe keep the memory of others that were noted beside them, and may be joined in a moment. */
    if (join_lists(worker, newest) || ++cycle.waited >= WAIT_MOST) {
        lists = bound(worker, false, newest);
        cycle.waited = 0;
    }
    tombstones = bound(worker, true, newest);
    cycle.lists.left_bytes = list_bytes(store);
    cycle.tombstones.left_bytes = tombstone_bytes(store);
    if (lists + tombstones == 0) {
        cycle.is_over = false;
        return;
    }
    if (!cycle.is_over)
        log_warning(
            "The window of active replication is full: operations of %llu keys and %llu deleted keys were given "
            "up. Members that are not heard hold it; what comes late is written anew.",
            (unsigned long long)lists, (unsigned long long)tombstones);
    cycle.is_over = true;
}

void window_cycle_bound(struct worker *worker, uint64_t newest)
{
    gate_assert_alone();
    access_begin(&worker->run.access, worker_now_ms(worker), false);
    keep_bounds(worker, newest);
}

/* ------------------------------------------------------------------------------------------------------- repair -- */

static void add_words(const struct slice *words, uint32_t count, struct blob *value, void *context)
{
    const struct window_key *known = context;
    struct worker *worker = worker_self();

    const bool is_library = known->db == horizon_libraries_db(&worker->server->store->horizon);

    effects_add_value(&worker->run.effects, is_library ? 0 : known->db, words, count, value, EFFECT_PLAIN);
    operation_describe(&worker->run.effects, words, count);
}

/* What others do on a key meanwhile, and is not here yet, is older than the value that is written anew: that would take
 * it back. So a key waits until all that is known of it is settled. */
static bool has_to_wait(const struct window_key *known)
{
    return merge_record_last(&known->record).stamp > cycle.quiet_before;
}

/* A member that is silent holds the frontier, for hours where it never comes back: then it is enough that all is here
 * of those that are heard. */
static void note_patience(struct worker *worker, uint64_t now_us, bool is_dirty)
{
    if (!is_dirty || cycle.dirty_us == 0)
        cycle.dirty_us = is_dirty ? now_us : 0;
    cycle.quiet_before = UINT64_MAX;
    if (is_dirty && now_us - cycle.dirty_us < PATIENT_US)
        cycle.quiet_before = horizon_frontier(&worker->server->store->horizon);
    else if (is_dirty && now_us - cycle.dirty_us < 2 * PATIENT_US)
        cycle.quiet_before = node_heard_up_to();
}

/* Keys that active-repair-rate allows in this slice. What is not used up, of a second at most, is left for the next. */
static uint64_t take_credit(uint64_t now_us)
{
    const uint64_t rate = (uint64_t)OPTION_GET(option_active_repair_rate);
    const uint64_t passed_us = MIN(now_us - cycle.repair_us, (uint64_t)SECOND_US);

    cycle.repair_us = now_us;
    if (rate == 0)
        return UINT64_MAX;
    cycle.repair_credit = MIN(cycle.repair_credit + passed_us * rate, rate * SECOND_US);
    return cycle.repair_credit / SECOND_US;
}

struct repairing {
    uint64_t left; /* keys in this slice */
    uint32_t here; /* of this stripe */
};

static void write_anew(struct access *access, struct window_key *known, void *context)
{
    struct worker *worker = worker_self();
    const struct key key = window_name(known);
    struct repairing *repairing = context;

    if (known->dirty.stamp == 0 || repairing->here == 0 || repairing->left == 0 || has_to_wait(known))
        return;
    repairing->here--;
    repairing->left--;
    value_words(access, known->db, &key, add_words, known);
    changed_end_group(&worker->run.changed, access, &worker->run.effects, access->now_ms);
    effects_end_group(&worker->run.effects);
    atomic_fetch_add_explicit(&cycle.repaired, 1, memory_order_relaxed);
}

static void repair(struct worker *worker, uint32_t stripe, void *context)
{
    struct access *access = &worker->run.access;
    struct repairing *repairing = context;

    if (repairing->left == 0)
        return;
    repairing->here = WINDOW_CYCLE_REPAIRS;
    access->effects = &worker->run.effects;
    window_each_lasting(access, stripe, write_anew, repairing);
    dispatch_settle_access(access);
    access->effects = NULL;
}

static void repair_some(struct worker *worker, uint64_t now_us)
{
    const uint64_t allowed = take_credit(now_us);
    struct repairing repairing = {.left = allowed};

    each_stripe(worker, window_has_dirty, repair, &repairing, now_us + 2 * WINDOW_CYCLE_SLICE_US);
    if (allowed != UINT64_MAX)
        cycle.repair_credit -= (allowed - repairing.left) * SECOND_US;
}

/* What is missing here may be there at others, where the flush came in time. What is here was marked with it. */
static void tell_late_flush(struct worker *worker, unsigned db)
{
    struct access *access = &worker->run.access;
    struct horizon *horizon = &access->store->horizon;
    const uint64_t stamp = horizon_of(horizon, db).flush.stamp + 1; /* it stands before its entry */
    char digits[NUMBER_I64_SPACE];
    const struct slice words[] = {SLICE("KEYDB.OP.FLUSHED"), slice_make(digits, number_format_u64(digits, stamp))};

    access->effects = &worker->run.effects;
    effects_add_operation(&worker->run.effects, db, words, countof(words));
    operation_describe(&worker->run.effects, words, countof(words));
    changed_end_group(&worker->run.changed, access, &worker->run.effects, access->now_ms);
    effects_end_group(&worker->run.effects);
    dispatch_settle_access(access);
    access->effects = NULL;
    horizon_forget_late_flush(horizon, db);
}

static void tell_late_flushes(struct worker *worker)
{
    const struct horizon *horizon = &worker->server->store->horizon;

    for (unsigned db = 0; db < horizon->database_count; db++) {
        if (UNLIKELY(horizon_has_late_flush(horizon, db)) && node_may_repair())
            tell_late_flush(worker, db);
    }
}

/* Once for many keys. */
static void log_repair(bool has_dirty)
{
    const uint64_t repaired = window_cycle_repaired();

    if (LIKELY(has_dirty == cycle.has_dirty))
        return;
    cycle.has_dirty = has_dirty;
    if (has_dirty)
        cycle.repaired_before = repaired;
    else
        log_notice("All keys that operations had changed too late are clean: %llu were written anew",
                   (unsigned long long)(repaired - cycle.repaired_before));
}

/* ------------------------------------------------------------------------------------------------------- slices -- */

static void work(struct worker *worker)
{
    struct store *store = worker->server->store;
    const uint64_t now_us = clock_monotonic_us();
    struct window_totals totals;

    access_begin(&worker->run.access, worker_now_ms(worker), false);
    window_settle_noted(&worker->run.access);
    each_stripe(worker, window_has_settled, settle, NULL, now_us + WINDOW_CYCLE_SLICE_US);
    keep_bounds(worker, journal_clock(&worker->server->journal));
    window_totals(store, &totals);
    tell_late_flushes(worker);
    note_patience(worker, now_us, totals.dirty != 0);
    if (UNLIKELY(totals.dirty != 0) && node_may_repair())
        repair_some(worker, now_us);
    log_repair(totals.dirty != 0);
}

static void sample(struct server *server)
{
    struct worker *worker = &server->workers[0];

    worker_assert_self(worker);
    if (LIKELY(!active_is_on()) || server->store->window == NULL || worker->reentrant || !gate_enter(&worker->member))
        return;
    if (!loading_runs() && !atomic_load_explicit(&server->cron_paused, memory_order_relaxed))
        work(worker);
    gate_leave(&worker->member);
}

const struct lifecycle window_cycle_lifecycle = {.server_sample = sample};
