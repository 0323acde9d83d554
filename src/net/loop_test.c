#include "net/loop.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/random.h"
#include "base/tick.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

static enum loop_kind kind;
static struct loop *loop;
static unsigned wakes;
static unsigned turn_ends;
static _Atomic unsigned mail; /* atomic: mail of the other thread */

static void on_wake(struct loop *woken)
{
    assert_ptr_equal(woken, loop);
    wakes++;
}

static void on_turn_end(struct loop *turned)
{
    assert_ptr_equal(loop_user(turned), &mail);
    turn_ends++;
}

static int setup_loop(void **state)
{
    struct loop_options options = {.kind = kind, .on_wake = on_wake, .on_turn_end = on_turn_end, .user = &mail};

    (void)state;
    wakes = turn_ends = 0;
    atomic_store(&mail, 0);
    loop = loop_create(&options);
    assert_non_null(loop);
    return 0;
}

static int teardown_loop(void **state)
{
    (void)state;
    loop_destroy(&loop);
    assert_null(loop);
    return 0;
}

static void turns_and_time(void **state)
{
    uint64_t begin = clock_monotonic_us();

    (void)state;
    loop_turn(loop, 0);
    loop_turn(loop, 20000);
    assert_true(clock_monotonic_us() - begin >= 20000);
    assert_int_equal(turn_ends, 2);
    assert_int_equal(wakes, 0);
    assert_true((uint64_t)loop_now_us(loop) >= begin + 20000);
    assert_int_equal(loop_stats(loop)->turns, 2);
    assert_int_equal(loop_stats(loop)->waits, 1);
}

/* The clock is asked once a millisecond: between, the time goes on all the same, neither back nor ahead of it. */
static void time_goes_on_within_a_millisecond(void **state)
{
    enum { ENOUGH = 3000 }; /* the clock alone would make 1000 in a second */
    const uint64_t begin_us = clock_monotonic_us();
    int64_t before_us = loop_update_time(loop);
    unsigned steps = 0;

    (void)state;
    while (steps < ENOUGH && clock_monotonic_us() - begin_us < 1000000) {
        int64_t now_us;

        loop_turn(loop, 0);
        now_us = loop_now_us(loop);
        assert_true(now_us >= before_us);
        assert_true(now_us <= (int64_t)clock_monotonic_us());
        steps += now_us != before_us;
        before_us = now_us;
    }
    assert_int_equal(steps, ENOUGH);
    usleep(2000);
    before_us = (int64_t)clock_monotonic_us();
    loop_turn(loop, 0);
    assert_true(loop_now_us(loop) >= before_us);
}

/* Turns with something to do at once. */
static void turn_at_pace(struct loop *turned, int fd, unsigned turns)
{
    const uint64_t one = 1;

    for (unsigned i = 0; i < turns; i++) {
        assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
        loop_turn(turned, 1000000);
    }
}

static void take_count(struct loop *turned, struct loop_watch *watch)
{
    uint64_t count;

    (void)turned;
    assert_int_equal(read(watch->fd, &count, sizeof(count)), sizeof(count));
}

/* It looks before it sleeps as long as that finds something: each look that does not counts for four that do. */
static void spins_while_events_come_soon(void **state)
{
    struct loop_options options = {.kind = kind, .spin_us = 1000};
    struct loop *other = loop_create(&options);
    struct loop_watch watch = {0};
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    uint64_t before;

    (void)state;
    assert_non_null(other);
    assert_true(loop_watch_start(other, &watch, fd, take_count));
    turn_at_pace(other, fd, 100);
    before = loop_stats(other)->spins;
    assert_in_range(before, 60, 100); /* after eight; some more if it did not run for a while */
    for (unsigned i = 0; i < 20; i++)
        loop_turn(other, 5000);
    assert_in_range(loop_stats(other)->spins - before, 0, 4);
    before = loop_stats(other)->spins;
    turn_at_pace(other, fd, 100);
    assert_in_range(loop_stats(other)->spins - before, 60, 100);
    loop_watch_stop(other, &watch);
    close(fd);
    loop_destroy(&other);
}

static uint64_t spun; /* ticks */

static void spin(struct loop *turned, struct loop_timer *timer)
{
    const uint64_t from = tick_now(), begin_us = clock_monotonic_us();

    (void)turned;
    (void)timer;
    while (clock_monotonic_us() - begin_us < 2000) {
    }
    spun = tick_now() - from;
}

static void turns_are_measured_without_their_waits(void **state)
{
    const int64_t wait_us = 20000;
    struct loop_timer timer = {0};
    struct loop_times times;
    uint64_t from = tick_now();

    (void)state;
    loop_times(loop, &times);
    assert_int_equal(times.serving, 0);
    loop_turn(loop, wait_us);
    loop_times(loop, &times);
    assert_true(times.serving > 0);
    assert_true(times.serving <= tick_now() - from - tick_from_ns((uint64_t)wait_us * 999));
    loop_timer_start(loop, &timer, 0, spin);
    loop_turn(loop, 0);
    loop_times(loop, &times);
    assert_true(times.timers >= spun);
    assert_true(times.serving >= times.timers);
    assert_true(times.longest >= spun);
    assert_true(times.longest <= times.serving);
    loop_forget_longest(loop);
    loop_times(loop, &times);
    assert_int_equal(times.longest, 0);
    assert_true(times.serving >= spun);
}

static void own_wake_is_not_lost(void **state)
{
    (void)state;
    loop_wake(loop);
    loop_wake(loop);
    loop_turn(loop, -1); /* does not sleep */
    assert_int_equal(wakes, 1);
    loop_turn(loop, 0);
    assert_int_equal(wakes, 1);
}

enum { POSTS = 100000, THREADS = 2 };

static void *post_mail(void *argument)
{
    (void)argument;
    for (int i = 0; i < POSTS; i++) {
        atomic_fetch_add_explicit(&mail, 1, memory_order_relaxed);
        loop_wake(loop);
        if (i % 1000 == 0)
            usleep(50);
    }
    return NULL;
}

/* The loop sleeps without limit: a lost wake would hang it, and alarm() would end the test. */
static void no_wake_is_lost(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    alarm(60);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, post_mail, NULL), 0);
    while (atomic_load(&mail) < POSTS * THREADS) {
        unsigned before = wakes;

        loop_turn(loop, -1);
        assert_true(wakes > before);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    alarm(0);
}

/* ------------------------------------------------------------------------------------------------- timers -- */

struct probe {
    struct loop_timer timer;
    int64_t wanted_us;
    unsigned fired;
    bool again;
};

static int64_t last_due_us;

static void on_timer(struct loop *running, struct loop_timer *timer)
{
    struct probe *probe = container_of(timer, struct probe, timer);

    assert_true(loop_now_us(running) >= probe->wanted_us);
    assert_true(probe->wanted_us >= last_due_us); /* in order */
    last_due_us = probe->wanted_us;
    probe->fired++;
    if (probe->again) {
        probe->wanted_us = loop_now_us(running);
        loop_timer_start(running, timer, 0, on_timer);
    }
}

static void start(struct probe *probe, int64_t after_us)
{
    probe->wanted_us = loop_now_us(loop) + after_us;
    loop_timer_start(loop, &probe->timer, after_us, on_timer);
}

static void timers_fire_in_order(void **state)
{
    struct probe probes[500] = {0};
    struct random random;

    (void)state;
    last_due_us = 0;
    random_seed(&random, 5);
    loop_update_time(loop);
    for (size_t i = 0; i < countof(probes); i++)
        start(&probes[i], (int64_t)random_below(&random, 50000));
    for (size_t i = 0; i < countof(probes); i++) {
        if (i % 3 == 0)
            loop_timer_stop(loop, &probes[i].timer);
        if (i % 5 == 0)
            start(&probes[i], (int64_t)random_below(&random, 50000)); /* moved, or started anew */
    }
    for (int64_t end_us = loop_now_us(loop) + 60000; loop_now_us(loop) < end_us;)
        loop_turn(loop, 10000);
    for (size_t i = 0; i < countof(probes); i++) {
        assert_int_equal(probes[i].fired, i % 3 != 0 || i % 5 == 0);
        assert_false(loop_timer_is_running(&probes[i].timer));
    }
}

static void timer_again_is_next_turn(void **state)
{
    struct probe probe = {.again = true};

    (void)state;
    last_due_us = 0;
    loop_update_time(loop);
    start(&probe, 0);
    loop_turn(loop, 0);
    assert_int_equal(probe.fired, 1);
    loop_turn(loop, -1); /* due already: no sleep */
    assert_int_equal(probe.fired, 2);
    loop_timer_stop(loop, &probe.timer);
    loop_timer_stop(loop, &probe.timer);
    loop_turn(loop, 0);
    assert_int_equal(probe.fired, 2);
}

static void sleeps_until_the_timer(void **state)
{
    struct probe probe = {0};
    uint64_t begin = 0;

    (void)state;
    last_due_us = 0;
    begin = (uint64_t)loop_update_time(loop);
    start(&probe, 15000);
    while (probe.fired == 0)
        loop_turn(loop, -1);
    assert_true(clock_monotonic_us() - begin >= 15000);
    assert_true(loop_stats(loop)->turns <= 3);
}

/* ------------------------------------------------------------------------------------------------ watches -- */

static unsigned ready_calls;
static char last_byte;

static void read_byte(struct loop *running, struct loop_watch *watch)
{
    (void)running;
    ready_calls++;
    assert_int_equal(read(watch->fd, &last_byte, 1), 1);
}

static void watches_report_while_readable(void **state)
{
    struct loop_watch watch;
    int ends[2];

    (void)state;
    ready_calls = 0;
    assert_int_equal(pipe(ends), 0);
    assert_true(loop_watch_start(loop, &watch, ends[0], read_byte));
    loop_turn(loop, 1000);
    assert_int_equal(ready_calls, 0);
    assert_int_equal(write(ends[1], "abc", 3), 3);
    for (int i = 0; i < 10 && ready_calls < 3; i++)
        loop_turn(loop, 1000);
    assert_int_equal(ready_calls, 3);
    assert_int_equal(last_byte, 'c');
    assert_int_equal(write(ends[1], "d", 1), 1);
    loop_watch_stop(loop, &watch);
    loop_watch_stop(loop, &watch);
    loop_turn(loop, 1000);
    loop_turn(loop, 1000);
    assert_int_equal(ready_calls, 3);
    assert_true(loop_watch_start(loop, &watch, ends[0], read_byte));
    loop_turn(loop, 1000);
    loop_turn(loop, 1000);
    assert_int_equal(ready_calls, 4);
    loop_watch_stop(loop, &watch);
    close(ends[0]);
    close(ends[1]);
}

static struct loop_watch twins[2];

static struct loop_watch heir;
static int quiet[2];

static void never_called(struct loop *running, struct loop_watch *watch)
{
    (void)running;
    (void)watch;
    fail();
}

/* Stops the other one, whose event may stand in the same batch, and gives its place to a third. */
static void stop_other(struct loop *running, struct loop_watch *watch)
{
    ready_calls++;
    loop_watch_stop(running, &twins[watch == &twins[0]]);
    memset(&twins[watch == &twins[0]], 0xee, sizeof(twins[0]));
    assert_true(loop_watch_start(running, &heir, quiet[0], never_called));
}

static void ignore_watch(struct loop *watched, struct loop_watch *watch)
{
    char byte;

    (void)watched;
    assert_int_equal(1, read(watch->fd, &byte, 1));
}

static void events_are_seen_before_they_are_served(void **state)
{
    struct loop_watch watch = {0};
    int ends[2];

    (void)state;
    assert_int_equal(0, pipe(ends));
    assert_true(loop_watch_start(loop, &watch, ends[0], ignore_watch));
    loop_turn(loop, 0);
    assert_false(loop_has_events(loop));
    assert_int_equal(1, write(ends[1], "x", 1));
    assert_true(loop_has_events(loop));
    assert_true(loop_has_events(loop));
    loop_turn(loop, 0);
    assert_false(loop_has_events(loop));
    loop_wake(loop);
    assert_true(loop_has_events(loop));
    loop_turn(loop, 0);
    assert_false(loop_has_events(loop));
    loop_watch_stop(loop, &watch);
    close(ends[0]);
    close(ends[1]);
}

static void stopped_watch_is_not_called(void **state)
{
    int ends[2][2];

    (void)state;
    ready_calls = 0;
    assert_int_equal(pipe(quiet), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pipe(ends[i]), 0);
        assert_true(loop_watch_start(loop, &twins[i], ends[i][0], stop_other));
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(write(ends[i][1], "x", 1), 1);
    loop_turn(loop, 1000);
    assert_int_equal(ready_calls, 1);
    loop_watch_stop(loop, twins[0].on_ready == stop_other ? &twins[0] : &twins[1]);
    loop_watch_stop(loop, &heir);
    close(quiet[0]);
    close(quiet[1]);
    for (int i = 0; i < 2; i++) {
        close(ends[i][0]);
        close(ends[i][1]);
    }
}

#define FOR(test) cmocka_unit_test_setup_teardown(test, setup_loop, teardown_loop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOR(turns_and_time),
        FOR(time_goes_on_within_a_millisecond),
        FOR(turns_are_measured_without_their_waits),
        FOR(spins_while_events_come_soon),
        FOR(own_wake_is_not_lost),
        FOR(no_wake_is_lost),
        FOR(timers_fire_in_order),
        FOR(timer_again_is_next_turn),
        FOR(sleeps_until_the_timer),
        FOR(watches_report_while_readable),
        FOR(events_are_seen_before_they_are_served),
        FOR(stopped_watch_is_not_called),
    };
    int failed = 0;

    tick_setup();
    kind = LOOP_EPOLL;
    failed += cmocka_run_group_tests_name("epoll", tests, NULL, NULL);
    kind = LOOP_IO_URING;
    failed += cmocka_run_group_tests_name("io_uring", tests, NULL, NULL);
    return failed;
}
