#include "server/upkeep/size_cycle.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/spinlock.h"
#include "net/loop.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/loading.h"

#include <inttypes.h>
#include <string.h>

enum { STEP_KEYS = 64, SIZE_CLASSES = 65, LOOK_US = 100, US_PER_SECOND = 1000 * 1000 };

/* Types that are counted, as the names of their lines. */
static const struct {
    enum value_type type;
    const char *name;
} kinds[] = {
    {TYPE_STRING, "strings_sizes"}, {TYPE_LIST, "lists_items"},  {TYPE_SET, "sets_items"},
    {TYPE_ZSET, "zsets_items"},     {TYPE_HASH, "hashes_items"},
};

static struct {
    _Atomic bool is_wanted; /* atomic: relaxed; somebody has asked, until the walk has ended */
    /* Worker 0's, of the walk: */
    struct loop_timer timer;
    bool has_begun;
    unsigned db;
    uint64_t cursor, upheavals, spent_us;
    uint64_t counts[TYPE_COUNT][SIZE_CLASSES]; /* of this database; class 0: empty, class i: below 2^i */
    struct buffer text;                        /* the lines of the databases before */
    struct spinlock lock; /* rank LOCK_REGISTRY: guards what follows, the result of the last walk */
    struct buffer told;
    int64_t ended_us; /* wall clock; 0: there was none */
    uint64_t took_us; /* without the pauses */
} cycle;              /* global: what INFO tells is one for all */

/* ------------------------------------------------------------------------------------------------------ counting -- */

static unsigned class_of(uint64_t size)
{
    return size == 0 ? 0 : 64 - (unsigned)__builtin_clzll(size);
}

static bool is_counted(const struct entry *entry, void *context)
{
    (void)context;
    for (size_t i = 0; i < countof(kinds); i++) {
        if (kinds[i].type == (enum value_type)entry->type)
            return true;
    }
    return false;
}

static void count(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    uint64_t size;

    (void)db;
    (void)context;
    if (entry->type == TYPE_STRING)
        size = entry_string_size(entry);
    else
        size = access->store->types[entry->type].ops->count(entry_value(entry));
    cycle.counts[entry->type][class_of(size)]++;
}

/* The least size of a class: 512, then 1K and so on. */
static void append_class(struct buffer *text, unsigned index)
{
    static const char units[][2] = {"", "K", "M", "G", "T", "P", "E"};

    if (index == 0)
        buffer_append_char(text, '0');
    else
        buffer_printf(text, "%u%s", 1U << (index - 1) % 10, units[(index - 1) / 10]);
}

/* No line for a type of which there is no value. */
static void append_kind(struct buffer *text, unsigned db, const char *name, const uint64_t *counts)
{
    const char *before = ":";

    for (unsigned i = 0; i < SIZE_CLASSES; i++) {
        if (counts[i] == 0)
            continue;
        if (*before == ':')
            buffer_printf(text, "db%u_distrib_%s", db, name);
        buffer_append_text(text, before);
        append_class(text, i);
        buffer_printf(text, "=%" PRIu64, counts[i]);
        before = ",";
    }
    if (*before == ',')
        buffer_append_text(text, "\r\n");
}

static void database_ends(void)
{
    for (size_t i = 0; i < countof(kinds); i++)
        append_kind(&cycle.text, cycle.db, kinds[i].name, cycle.counts[kinds[i].type]);
    memset(cycle.counts, 0, sizeof(cycle.counts));
    cycle.db++;
}

/* ------------------------------------------------------------------------------------------------------- walking -- */

static bool is_wanted(void)
{
    return atomic_load_explicit(&cycle.is_wanted, memory_order_relaxed);
}

static uint64_t upheavals(const struct store *store)
{
    return atomic_load_explicit(&store->upheavals, memory_order_relaxed);
}

/* The spent time stays: it is told of the whole. */
static void begin(const struct store *store)
{
    if (!cycle.has_begun)
        cycle.spent_us = 0;
    cycle.has_begun = true;
    cycle.db = 0;
    cycle.cursor = 0;
    cycle.upheavals = upheavals(store);
    memset(cycle.counts, 0, sizeof(cycle.counts));
    buffer_clear(&cycle.text);
}

static void end_walk(void)
{
    struct buffer before;

    spinlock_acquire(&cycle.lock);
    before = cycle.told;
    cycle.told = cycle.text;
    cycle.ended_us = clock_wall_us();
    cycle.took_us = cycle.spent_us;
    spinlock_release(&cycle.lock);
    buffer_init(&cycle.text);
    buffer_fini(&before);
    cycle.has_begun = false;
    atomic_store_explicit(&cycle.is_wanted, false, memory_order_relaxed);
}

enum step { STEP_MORE, STEP_BUSY, STEP_LAST };

/* Counts some keys. When databases were exchanged or emptied, it begins anew. */
static enum step step(struct access *access)
{
    const struct access_visitor visitor = {.wanted = is_counted, .visit = count, .sees_expired = true};
    uint32_t busy;

    if (!cycle.has_begun || cycle.upheavals != upheavals(access->store))
        begin(access->store);
    if (cycle.db >= store_database_bound(access->store))
        return STEP_LAST;
    if (access_scan(access, cycle.db, &cycle.cursor, STEP_KEYS, &visitor, &busy) == WALK_BUSY)
        return STEP_BUSY;
    if (cycle.cursor == 0)
        database_ends();
    return STEP_MORE;
}

/* A slice that has taken so long goes on. *look_us: when to look for other work again, which costs a system call. */
static bool may_go_on(const struct worker *worker, uint64_t spent_us, uint64_t *look_us)
{
    if (LIKELY(spent_us < *look_us))
        return true;
    if (gate_is_wanted(&worker->member))
        return false;
    *look_us = spent_us + LOOK_US;
    return spent_us < SIZE_CYCLE_IDLE_US && !loop_has_events(worker->loop);
}

/* Steps until the slice is over. Returns how long it took. */
static uint64_t work(struct worker *worker)
{
    struct access *access = &worker->run.access;
    uint64_t begin_us = clock_monotonic_us(), look_us = SIZE_CYCLE_SLICE_US, spent_us;
    enum step last;

    worker_assert_inside(worker);
    access_begin(access, worker_now_ms(worker), false);
    do {
        last = step(access);
        spent_us = clock_monotonic_us() - begin_us;
    } while (last == STEP_MORE && may_go_on(worker, spent_us, &look_us));
    cycle.spent_us += spent_us;
    if (last == STEP_LAST)
        end_walk();
    return spent_us;
}

/* A worker that found the gate closed continues until it was inside once: the gate stays open for it then. */
static void on_timer(struct loop *loop, struct loop_timer *timer)
{
    struct worker *worker = loop_user(loop);
    uint64_t spent_us = SIZE_CYCLE_SLICE_US;

    if (gate_enter(&worker->member)) {
        if (!loading_runs() && !atomic_load_explicit(&worker->server->cron_paused, memory_order_relaxed))
            spent_us = work(worker);
        gate_leave(&worker->member);
        if (!is_wanted())
            return;
    }
    loop_timer_start(loop, timer, (int64_t)spent_us * (100 - SIZE_CYCLE_PERCENT) / SIZE_CYCLE_PERCENT, on_timer);
}

static void sample(struct server *server)
{
    struct worker *worker = &server->workers[0];

    worker_assert_self(worker);
    if (LIKELY(!is_wanted()) || loop_timer_is_running(&cycle.timer))
        return;
    loop_timer_start(worker->loop, &cycle.timer, SIZE_CYCLE_SLICE_US, on_timer);
}

static bool start(struct server *server)
{
    (void)server;
    spinlock_init(&cycle.lock, LOCK_REGISTRY);
    return true;
}

static void end(struct server *server)
{
    (void)server;
    gate_assert_main_alone();
    buffer_fini(&cycle.text);
    buffer_fini(&cycle.told);
}

const struct lifecycle size_cycle_lifecycle = {
    .server_start = start,
    .server_sample = sample,
    .server_end = end,
};

/* ------------------------------------------------------------------------------------------------------- telling -- */

struct picture {
    int64_t ended_s;
    uint64_t took_us;
    bool runs;
};

static void take(void *out, const struct info_moment *moment)
{
    struct picture *picture = out;
    int64_t ended_us;

    spinlock_acquire(&cycle.lock);
    ended_us = cycle.ended_us;
    picture->took_us = cycle.took_us;
    spinlock_release(&cycle.lock);
    picture->ended_s = ended_us / US_PER_SECOND;
    picture->runs = is_wanted();
    if (!picture->runs && moment->wall_us - ended_us >= SIZE_CYCLE_FRESH_US) {
        picture->runs = true;
        atomic_store_explicit(&cycle.is_wanted, true, memory_order_relaxed);
    }
}

static void append_told(struct buffer *text, const void *picture)
{
    (void)picture;
    spinlock_acquire(&cycle.lock);
    buffer_append_slice(text, buffer_slice(&cycle.told));
    spinlock_release(&cycle.lock);
}

static const struct info_source source = {sizeof(struct picture), .take = take};

const struct info_row size_cycle_info[] = {
    INFO_FIELD("keysizes_time", &source, struct picture, ended_s),
    INFO_FIELD("keysizes_usec", &source, struct picture, took_us),
    INFO_FIELD("keysizes_walk_in_progress", &source, struct picture, runs),
    INFO_LINES("db<n>_distrib_<type>", &source, append_told),
    {0},
};
