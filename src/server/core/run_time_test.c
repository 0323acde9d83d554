#include "server/core/run_time.h"

#include "base/fence.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/thread.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define NOW_MS INT64_C(1800000000000)
enum { WORKERS = 4, PROMISES = 20000, WANDER_MS = 50 };

static struct server *server;
static _Atomic int64_t clock_ms, promised_ms;
static _Atomic bool is_over;
static _Atomic uint64_t ran_count;

static void wake(void *context)
{
    (void)context;
}

static int setup(void **state)
{
    (void)state;
    fence_setup();
    server = mem_aligned_alloc(CACHE_LINE_BYTES, sizeof(*server));
    memset(server, 0, sizeof(*server));
    gate_init(&server->gate);
    journal_init(&server->journal);
    server->worker_count = WORKERS;
    server->workers = mem_aligned_alloc(CACHE_LINE_BYTES, WORKERS * sizeof(struct worker));
    memset(server->workers, 0, WORKERS * sizeof(struct worker));
    for (unsigned i = 0; i < WORKERS; i++) {
        server->workers[i].server = server;
        server->workers[i].index = i;
        gate_join(&server->gate, &server->workers[i].member, wake, NULL);
    }
    worker_adopt(&server->workers[0]);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WORKERS; i++)
        gate_part(&server->workers[i].member);
    journal_fini(&server->journal);
    gate_fini(&server->gate);
    mem_free(server->workers);
    mem_free(server);
    return 0;
}

static int64_t promise(int64_t now_ms)
{
    struct gate_member *member = &server->workers[0].member;
    int64_t least_ms;

    assert_true(gate_enter(member));
    least_ms = run_time_promise(server, now_ms);
    gate_leave(member);
    return least_ms;
}

/* A thread of its own would do it; one that is known to wait inside is enough. */
static int64_t hold_as(struct worker *worker, int64_t now_ms)
{
    worker->thread_id = spinlock_self_id();
    return run_time_hold(worker, now_ms);
}

static void a_promise_waits_for_a_command_and_the_clock_may_jump(void **state)
{
    struct worker *other = &server->workers[1];

    (void)state;
    run_time_raise(NOW_MS - 1000);
    assert_int_equal(hold_as(other, NOW_MS - 5000), NOW_MS - 1000); /* below what a start before has used */
    assert_int_equal(promise(NOW_MS), NOW_MS);
    assert_int_equal(hold_as(other, NOW_MS - 1), NOW_MS);
    assert_true(gate_enter(&other->member));
    assert_int_equal(hold_as(other, NOW_MS + 10), NOW_MS + 10);
    assert_int_equal(promise(NOW_MS + 100), NOW_MS + 10); /* it runs */
    other->reentrant = true;
    assert_int_equal(hold_as(other, NOW_MS + 50), NOW_MS + 100); /* others inside of its script */
    assert_int_equal(promise(NOW_MS + 120), NOW_MS + 10);
    other->reentrant = false;
    gate_leave(&other->member);
    assert_int_equal(promise(NOW_MS + 120), NOW_MS + 120);
    assert_int_equal(promise(NOW_MS - 3600000), NOW_MS + 120); /* an hour back */
    assert_int_equal(hold_as(other, NOW_MS - 3600000), NOW_MS + 120);
    assert_int_equal(promise(NOW_MS + 3600000), NOW_MS + 3600000);
}

/* While a command runs, no promise is above its time. */
static void run_commands(void *argument)
{
    struct worker *worker = argument;
    struct random random;
    int64_t least_ms = 0;

    random_seed(&random, worker->index);
    worker_adopt(worker);
    while (!atomic_load(&is_over)) {
        const int64_t now_ms = atomic_load(&clock_ms) - (int64_t)random_below(&random, WANDER_MS);
        int64_t time_ms;

        if (!gate_enter(&worker->member))
            continue;
        time_ms = run_time_hold(worker, now_ms);
        assert(time_ms >= now_ms && time_ms >= least_ms);
        for (uint64_t i = random_below(&random, 40); i != 0; i--)
            fence_pause();
        if (random_below(&random, 500) == 0)
            sched_yield();
        least_ms = atomic_load(&promised_ms);
        assert(least_ms <= time_ms);
        gate_leave(&worker->member);
        atomic_fetch_add_explicit(&ran_count, 1, memory_order_relaxed);
    }
}

static void no_command_runs_below_a_promise(void **state)
{
    struct thread threads[WORKERS] = {0};
    int64_t last_ms = 0;

    (void)state;
    atomic_store(&clock_ms, NOW_MS + 3600000);
    for (unsigned i = 1; i < WORKERS; i++)
        thread_start(&threads[i], "worker", run_commands, &server->workers[i]);
    for (int64_t i = 0; i < PROMISES; i++) {
        const int64_t least_ms = promise(NOW_MS + 3600000 + i);

        assert_true(least_ms >= last_ms);
        atomic_store(&promised_ms, least_ms);
        atomic_store(&clock_ms, NOW_MS + 3600000 + i);
        last_ms = least_ms;
        if (i % 64 == 0)
            sched_yield();
    }
    while (atomic_load(&ran_count) < 1000)
        sched_yield();
    atomic_store(&is_over, true);
    for (unsigned i = 1; i < WORKERS; i++)
        thread_join(&threads[i]);
    assert_true(promise(NOW_MS + 7200000) == NOW_MS + 7200000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_promise_waits_for_a_command_and_the_clock_may_jump),
        cmocka_unit_test(no_command_runs_below_a_promise),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
