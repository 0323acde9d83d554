#include "net/loop.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/tick.h"
#include "net/loop_priv.h"
#include "net/tls_priv.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A turn: wait and serve -> timers -> wake -> resumed connections -> on_turn_end -> flush -> TLS handshakes -> take
 * down closed connections.
 *
 * The wait does not sleep if something is queued for the next turn. A step empties its queue as it was at the begin of
 * the step. Additions of handlers to this or an earlier step are served in the next turn, so two connections cannot
 * keep a turn from ending. */

enum { WAKE_PENDING = 1, WAKE_SLEEPING = 2 };
/* The score of spinning, see judge_wait. */
enum { SPIN_SCORE_ENOUGH = 8, SPIN_SCORE_MOST = 16, SPIN_SCORE_LOSS = 4 };

/* ------------------------------------------------------------------------------------------------- waking -- */

void loop_wake(struct loop *loop)
{
    /* Always a read-modify-write: it orders the caller's mail before the loop's look at its mailbox. */
    uint32_t before = atomic_fetch_or(&loop->wake_state, WAKE_PENDING);
    uint64_t one = 1;

    if (before == WAKE_SLEEPING && write(loop->wake_fd, &one, sizeof(one)) < 0)
        assert(errno == EAGAIN || errno == EINTR); /* the counter is full: the loop is being told anyway */
}

/* May the wait sleep? From a true on until loop_rise() somebody who calls will write to the eventfd. */
static bool loop_may_sleep(struct loop *loop)
{
    uint32_t expected = 0;

    return atomic_compare_exchange_strong(&loop->wake_state, &expected, WAKE_SLEEPING);
}

static bool loop_rise(struct loop *loop)
{
    return (atomic_exchange(&loop->wake_state, 0) & WAKE_PENDING) != 0;
}

static void on_wake_ready(struct loop *loop, struct loop_watch *watch)
{
    uint64_t count = 0;

    (void)loop;
    while (read(watch->fd, &count, sizeof(count)) < 0 && errno == EINTR) {
    }
}

/* ------------------------------------------------------------------------------------------------- timers -- */

static void timer_put(struct loop *loop, uint32_t at, struct loop_timer *timer)
{
    loop->timers.items[at] = timer;
    timer->heap_index = at + 1;
}

static void timer_rise(struct loop *loop, uint32_t at, struct loop_timer *timer)
{
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;

        if (loop->timers.items[parent]->due_us <= timer->due_us)
            break;
        timer_put(loop, at, loop->timers.items[parent]);
        at = parent;
    }
    timer_put(loop, at, timer);
}

static void timer_sink(struct loop *loop, uint32_t at, struct loop_timer *timer)
{
    for (;;) {
        uint32_t child = at * 2 + 1;

        if (child >= loop->timers.count)
            break;
        if (child + 1 < loop->timers.count && loop->timers.items[child + 1]->due_us < loop->timers.items[child]->due_us)
            child++;
        if (loop->timers.items[child]->due_us >= timer->due_us)
            break;
        timer_put(loop, at, loop->timers.items[child]);
        at = child;
    }
    timer_put(loop, at, timer);
}

void loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t after_us,
                      void (*fn)(struct loop *loop, struct loop_timer *timer))
{
    loop_assert_self(loop);
    loop_timer_stop(loop, timer);
    ARRAY_RESERVE(&loop->timers, 1);
    timer->fn = fn;
    timer->due_us = loop->now_us + MAX(after_us, 0);
    timer_rise(loop, loop->timers.count++, timer);
}

void loop_timer_stop(struct loop *loop, struct loop_timer *timer)
{
    uint32_t at = timer->heap_index - 1;
    struct loop_timer *last = NULL;

    loop_assert_self(loop);
    if (timer->heap_index == 0)
        return;
    assert(at < loop->timers.count);
    assert(loop->timers.items[at] == timer);
    timer->heap_index = 0;
    last = loop->timers.items[--loop->timers.count];
    if (last == timer)
        return;
    if (at > 0 && loop->timers.items[(at - 1) / 2]->due_us > last->due_us)
        timer_rise(loop, at, last);
    else
        timer_sink(loop, at, last);
}

/* Runs the timers that are due; a timer that starts itself again with 0 runs in the next turn. */
static void loop_run_timers(struct loop *loop)
{
    uint32_t limit = loop->timers.count;

    while (limit-- > 0 && loop->timers.count > 0 && loop->timers.items[0]->due_us <= loop->now_us) {
        struct loop_timer *timer = loop->timers.items[0];

        loop_timer_stop(loop, timer);
        timer->fn(loop, timer);
    }
}

/* ------------------------------------------------------------------------------------------------ watches -- */

static bool watch_start(struct loop *loop, struct loop_watch *watch, int fd, bool is_shared,
                        void (*on_ready)(struct loop *loop, struct loop_watch *watch))
{
    uint32_t index = 0;

    loop_assert_self(loop);
    while (index < loop->watches.count && loop->watches.items[index].watch != NULL)
        index++;
    if (index == loop->watches.count)
        *ARRAY_PUSH(&loop->watches) = (struct watch_slot){0};
    *watch = (struct loop_watch){.fd = fd,
                                 .on_ready = on_ready,
                                 .is_shared = is_shared,
                                 .tag = index,
                                 .generation = ++loop->watches.items[index].generation};
    loop->watches.items[index].watch = watch;
    if (loop->backend->watch_add(loop, watch))
        return true;
    loop->watches.items[index].watch = NULL;
    watch->on_ready = NULL;
    return false;
}

bool loop_watch_start(struct loop *loop, struct loop_watch *watch, int fd,
                      void (*on_ready)(struct loop *loop, struct loop_watch *watch))
{
    return watch_start(loop, watch, fd, false, on_ready);
}

bool loop_watch_shared(struct loop *loop, struct loop_watch *watch, int fd,
                       void (*on_ready)(struct loop *loop, struct loop_watch *watch))
{
    return watch_start(loop, watch, fd, true, on_ready);
}

void loop_watch_stop(struct loop *loop, struct loop_watch *watch)
{
    loop_assert_self(loop);
    if (watch->on_ready == NULL)
        return;
    assert(watch->tag < loop->watches.count);
    assert(loop->watches.items[watch->tag].watch == watch);
    loop->backend->watch_remove(loop, watch);
    loop->watches.items[watch->tag].watch = NULL;
    watch->on_ready = NULL;
}

/* An event may have been queued before its watch was stopped, or its slot given to another. */
void loop_watch_fire(struct loop *loop, uint32_t tag, uint32_t generation)
{
    struct loop_watch *watch = tag < loop->watches.count ? loop->watches.items[tag].watch : NULL;

    if (watch != NULL && watch->generation == generation)
        watch->on_ready(loop, watch);
}

/* -------------------------------------------------------------------------------------------------- turns -- */

static void loop_run_ready(struct loop *loop)
{
    struct conn *conn = loop->ready.first;
    struct conn *next = NULL;

    loop->ready = (struct conn_queue){0};
    for (; conn != NULL; conn = next) {
        next = conn->ready_next;
        conn_run_ready(conn);
    }
}

static void loop_flush(struct loop *loop)
{
    struct conn *conn = loop->dirty.first;
    struct conn *next = NULL;

    loop->dirty = (struct conn_queue){0};
    for (; conn != NULL; conn = next) {
        next = conn->dirty_next;
        conn_flush(conn);
    }
    output_pool_tried(&loop->pool);
    for (conn = loop->dirty.first; conn != NULL; conn = conn->dirty_next) /* TLS sends a part at a time */
        output_pool_add_transient(&loop->pool,
                                  output_memory_estimate(&conn->output) + output_memory_estimate(conn_wire(conn)));
}

/* A closed connection may still be in another queue: its memory is freed when it is in none. */
static void loop_finish_closing(struct loop *loop)
{
    struct conn *conn = loop->closing.first;
    struct conn *next = NULL;

    loop->closing = (struct conn_queue){0};
    for (; conn != NULL; conn = next) {
        next = conn->closing_next;
        if ((conn->flags & (CONN_DIRTY | CONN_READY)) != 0 || !conn_finish(conn))
            conn_queue_add(&loop->closing, conn, &conn->closing_next);
    }
}

static bool loop_has_work(const struct loop *loop)
{
    const struct conn *conn = loop->closing.first;

    if (loop->dirty.first != NULL || loop->ready.first != NULL)
        return true;
    if (loop->handshakes.first != NULL || loop->handshakes.stepped)
        return true;
    /* One that waits for its backend alone is no reason not to sleep: an event will come. */
    for (; conn != NULL; conn = conn->closing_next)
        if (conn->in_flight == 0)
            return true;
    return false;
}

static int64_t loop_timeout(struct loop *loop, int64_t timeout_us)
{
    int64_t due_us = 0;

    if (timeout_us == 0 || loop_has_work(loop))
        return 0;
    if (loop->timers.count > 0) {
        due_us = loop->timers.items[0]->due_us - loop->now_us;
        if (due_us <= 0)
            return 0;
        if (timeout_us < 0 || due_us < timeout_us)
            timeout_us = due_us;
    }
    return timeout_us;
}

static void add_relaxed(_Atomic uint64_t *sum, uint64_t ticks) /* the loop's thread alone adds; tick_sum() reads */
{
    atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + ticks, memory_order_relaxed);
}

static void note_turn(struct loop *loop)
{
    const uint64_t ticks = tick_now() - loop->served_from;
    uint64_t longest = atomic_load_explicit(&loop->longest_ticks, memory_order_relaxed);

    add_relaxed(&loop->serving_ticks, ticks);
    while ((int64_t)ticks > (int64_t)longest &&
           !atomic_compare_exchange_weak_explicit(&loop->longest_ticks, &longest, ticks, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    } /* somebody has forgotten it meanwhile */
}

/* Timers are seldom due: the counter is read only if one is. */
static void loop_run_due_timers(struct loop *loop)
{
    uint64_t from;

    if (loop->timers.count == 0 || loop->timers.items[0]->due_us > loop->now_us)
        return;
    from = tick_now();
    loop_run_timers(loop);
    add_relaxed(&loop->timer_ticks, tick_now() - from);
}

/* Spinning. A thread that sleeps is woken at a price: the sender of the next request pays a part of it, and the thread
 * the rest. That is more than a few microseconds of looking whether something has come. So where events have come that
 * soon lately, a wait looks for spin_us before it sleeps. An idle server, one whose clients need its processor, and one
 * that is never without work do not. */
static void begin_wait(struct loop *loop)
{
    loop->served_from = tick_now(); /* until it is over: from when it waits */
    loop->spin_until = loop->spin_score >= SPIN_SCORE_ENOUGH ? loop->served_from + loop->spin_ticks : 0;
    loop->stats.spins += loop->spin_until != 0;
}

/* Looking in vain costs more than it saves, so four of five looks have to find something. A wait that slept and was
 * woken early says that looking may be worth it; most of its time was the waking. */
static void judge_wait(struct loop *loop, uint64_t from)
{
    const int64_t ticks = (int64_t)(loop->served_from - from), limit = (int64_t)loop->spin_ticks;

    if (loop->spin_until != 0)
        loop->spin_score += ticks <= limit + limit / 2 ? 1 : -SPIN_SCORE_LOSS;
    else
        loop->spin_score += ticks <= 4 * limit ? 1 : -1;
    loop->spin_score = MIN(MAX(loop->spin_score, 0), SPIN_SCORE_MOST);
}

static void wait_for_events(struct loop *loop, int64_t timeout_us)
{
    const bool may_spin = timeout_us != 0 && loop->spin_ticks != 0;
    uint64_t from = 0;

    atomic_store_explicit(&loop->serving_since_us, 0, memory_order_relaxed);
    if (may_spin) {
        begin_wait(loop);
        from = loop->served_from;
    }
    loop->backend->wait(loop, timeout_us);
    if (may_spin)
        judge_wait(loop, from);
}

void loop_turn(struct loop *loop, int64_t timeout_us)
{
    loop_assert_self(loop);
    timeout_us = loop_timeout(loop, timeout_us);
    if (timeout_us != 0 && !loop_may_sleep(loop))
        timeout_us = 0;
    loop->stats.turns++;
    loop->stats.waits += timeout_us != 0;
    wait_for_events(loop, timeout_us);
    loop_run_due_timers(loop);
    if (loop_rise(loop)) {
        loop->stats.wakes++;
        if (loop->options.on_wake != NULL)
            loop->options.on_wake(loop);
    }
    if (loop->ready.first != NULL)
        loop_run_ready(loop);
    loop->handshakes.stepped = false;
    if (loop->options.on_turn_end != NULL)
        loop->options.on_turn_end(loop);
    if (loop->dirty.first != NULL)
        loop_flush(loop);
    else
        output_pool_tried(&loop->pool);
    if (loop->handshakes.first != NULL)
        tls_run_handshakes(loop);
    if (loop->closing.first != NULL)
        loop_finish_closing(loop);
    note_turn(loop);
}

/* The outer handler uses the loop's buffers: the inner ones get new buffers. Connections closed meanwhile stay in
 * memory until the end of the turn, so pointers that the turn holds stay valid. */
void loop_serve_reentrant(struct loop *loop)
{
    char *input = loop->input, *cipher = loop->cipher;
    size_t direct_taken = loop->direct_taken;

    loop_assert_self(loop);
    if (loop->backend->serve_reentrant == NULL)
        return;
    loop->input = mem_alloc(LOOP_HEADROOM_BYTES + LOOP_INPUT_BYTES);
    loop->cipher = cipher != NULL ? mem_alloc(LOOP_CIPHER_BYTES + LOOP_GATHER_BYTES) : NULL;
    loop->backend->serve_reentrant(loop);
    if (loop->handshakes.first != NULL)
        tls_run_handshakes(loop);
    if (loop->dirty.first != NULL)
        loop_flush(loop);
    mem_free(loop->input);
    loop->input = input;
    if (cipher != NULL) {
        mem_free(loop->cipher);
        loop->cipher = cipher;
    }
    loop->direct_taken = direct_taken;
}

/* ------------------------------------------------------------------------------------------- create, destroy -- */

/* LOOP_AUTO is epoll. Measured beside it, io_uring took 0.96 to 1.0 of its time a request with 50 connections, 0.93
 * with 400, 0.9 to 1.0 with a pipeline, not less for large values received. That does not outweigh that the ports of
 * a killed process stay taken for a while, which fails an immediate restart (see uring.c). */
static bool loop_start_backend(struct loop *loop, enum loop_kind kind)
{
#ifdef HAVE_LIBURING
    if (kind == LOOP_IO_URING) {
        loop->backend = &loop_backend_io_uring;
        if (loop->backend->setup(loop))
            return true;
        log_verbose("io_uring is not available (%s): using epoll", strerror(errno));
    }
#else
    (void)kind;
#endif
    loop->backend = &loop_backend_epoll;
    return loop->backend->setup(loop);
}

struct loop *loop_create(const struct loop_options *options)
{
    struct loop *loop = mem_aligned_alloc(CACHE_LINE_BYTES, sizeof(*loop));

    memset(loop, 0, sizeof(*loop));
    loop->options = *options;
    loop_adopt(loop);
    loop->spin_ticks = tick_from_ns((uint64_t)options->spin_us * 1000);
    lingers_init(&loop->lingers);
    loop_update_time(loop);
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (loop->wake_fd < 0 || !loop_start_backend(loop, options->kind))
        goto fail;
    if (!loop_watch_start(loop, &loop->wake_watch, loop->wake_fd, on_wake_ready)) {
        loop->backend->teardown(loop);
        goto fail;
    }
    loop->input = mem_alloc(LOOP_HEADROOM_BYTES + LOOP_INPUT_BYTES);
    output_pool_init(&loop->pool);
    return loop;
fail:
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    ARRAY_FINI(&loop->watches);
    mem_free(loop);
    return NULL;
}

void loop_destroy(struct loop **handle)
{
    struct loop *loop = *handle;

    *handle = NULL;
    if (loop == NULL)
        return;
    loop_assert_self(loop);
    loop->options.on_wake = NULL;
    loop->options.on_turn_end = NULL;
    while (loop->conns != NULL) {
        for (struct conn *conn = loop->conns; conn != NULL; conn = conn->all_next)
            conn_close(conn);
        while (loop->timers.count > 0)
            loop_timer_stop(loop, loop->timers.items[0]);
        loop_turn(loop, 1000);
    }
    lingers_fini(loop);
    loop_watch_stop(loop, &loop->wake_watch);
    loop->backend->teardown(loop);
    close(loop->wake_fd);
    output_pool_fini(&loop->pool);
    ARRAY_FINI(&loop->timers);
    ARRAY_FINI(&loop->watches);
    mem_free(loop->input);
    mem_free(loop->cipher);
    mem_free(loop);
}

void loop_adopt(struct loop *loop)
{
    loop->thread_id = spinlock_self_id();
}

void *loop_user(const struct loop *loop)
{
    return loop->options.user;
}

const char *loop_kind_name(const struct loop *loop)
{
    return loop->backend->name;
}

int64_t loop_now_us(const struct loop *loop)
{
    return loop->now_us;
}

int64_t loop_update_time(struct loop *loop)
{
    enum { SPAN_NS = 1000000 };

    loop_assert_self(loop);
    loop->clock_us = (int64_t)clock_monotonic_us();
    loop->clock_tick = tick_now(); /* second: the computed time is then behind the clock rather than ahead of it */
    loop->clock_span = tick_from_ns(SPAN_NS);
    loop->now_us = MAX(loop->now_us, loop->clock_us);
    return loop->now_us;
}

/* The turn's length needs a reading of the counter, and that is enough to know the time for a millisecond: by then the
 * two have drifted apart by some 10 ns. Asking the clock would take 20. */
void loop_wait_over(struct loop *loop)
{
    const uint64_t tick = tick_now(), since = tick - loop->clock_tick;

    loop->served_from = tick;
    if (LIKELY(since < loop->clock_span))
        loop->now_us = MAX(loop->now_us, loop->clock_us + (int64_t)tick_short_to_us(since));
    else
        loop_update_time(loop);
    atomic_store_explicit(&loop->serving_since_us, loop->now_us, memory_order_relaxed);
}

int64_t loop_serving_us(const struct loop *loop)
{
    int64_t since_us = atomic_load_explicit(&loop->serving_since_us, memory_order_relaxed);

    return since_us == 0 ? 0 : MAX((int64_t)clock_monotonic_us() - since_us, 1);
}

bool loop_has_events(const struct loop *loop)
{
    struct pollfd events = {.fd = loop->backend->events_fd(loop), .events = POLLIN};

    loop_assert_self(loop);
    if ((atomic_load_explicit(&loop->wake_state, memory_order_relaxed) & WAKE_PENDING) != 0)
        return true;
    return poll(&events, 1, 0) > 0;
}

void loop_each_written(struct loop *loop, void (*visit)(struct conn *conn, void *context), void *context)
{
    loop_assert_self(loop);
    for (struct conn *conn = loop->dirty.first, *next; conn != NULL; conn = next) {
        next = conn->dirty_next;
        visit(conn, context);
    }
}

struct output_pool *loop_output_pool(struct loop *loop)
{
    return &loop->pool;
}

const struct loop_stats *loop_stats(const struct loop *loop)
{
    debug_assert(loop->thread_id == spinlock_self); /* in every turn: without pipelining that is every request */
    return &loop->stats;
}

void loop_times(const struct loop *loop, struct loop_times *times)
{
    times->serving = tick_sum(&loop->serving_ticks);
    times->timers = tick_sum(&loop->timer_ticks);
    times->longest = atomic_load_explicit(&loop->longest_ticks, memory_order_relaxed);
}

void loop_forget_longest(struct loop *loop)
{
    atomic_store_explicit(&loop->longest_ticks, 0, memory_order_relaxed);
}
