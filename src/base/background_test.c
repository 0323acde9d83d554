#include "base/background.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { JOB_COUNT = 500 };
static _Atomic size_t next_place;
static size_t order[JOB_COUNT];
static _Atomic int begin_count, end_count, before_count, after_count;

static void note(void *argument)
{
    order[atomic_fetch_add(&next_place, 1)] = (size_t)(uintptr_t)argument;
}

static void thread_begin(void)
{
    atomic_fetch_add(&begin_count, 1);
}

static void thread_end(void)
{
    atomic_fetch_add(&end_count, 1);
}

static void before(void)
{
    atomic_fetch_add(&before_count, 1);
}

static void after(void)
{
    atomic_fetch_add(&after_count, 1);
}

static void one_thread_keeps_the_order(void **state)
{
    static const struct background_hooks hooks = {thread_begin, thread_end, before, after};

    (void)state;
    background_set_hooks(&hooks);
    background_setup(1);
    atomic_store(&next_place, 0);
    for (size_t i = 0; i < JOB_COUNT; i++)
        background_submit(BACKGROUND_FREE, note, (void *)(uintptr_t)i);
    background_drain();
    assert_int_equal(background_pending(BACKGROUND_FREE), 0);
    assert_int_equal(background_done(BACKGROUND_FREE), JOB_COUNT);
    assert_int_equal(background_done(BACKGROUND_CLOSE), 0);
    for (size_t i = 0; i < JOB_COUNT; i++)
        assert_int_equal(order[i], i);
    background_teardown();
    background_set_hooks(NULL);
    assert_int_equal(begin_count, 2); /* the other one is for jobs that free nothing */
    assert_int_equal(end_count, 2);
    assert_int_equal(before_count, JOB_COUNT);
    assert_int_equal(after_count, JOB_COUNT);
}

static void teardown_runs_what_is_left(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        atomic_store(&next_place, 0);
        background_setup(3);
        for (size_t i = 0; i < JOB_COUNT; i++)
            background_submit(i % 2 == 0 ? BACKGROUND_SYNC : BACKGROUND_CLOSE, note, NULL);
        background_teardown();
        assert_int_equal(atomic_load(&next_place), JOB_COUNT);
        assert_int_equal(background_done(BACKGROUND_SYNC), JOB_COUNT / 2);
    }
}

static pthread_mutex_t obstacle = PTHREAD_MUTEX_INITIALIZER;

static void wait_for_obstacle(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&obstacle);
    pthread_mutex_unlock(&obstacle);
}

static void pending_counts_the_running_one(void **state)
{
    (void)state;
    background_setup(1);
    pthread_mutex_lock(&obstacle);
    background_submit(BACKGROUND_OTHER, wait_for_obstacle, NULL);
    background_submit(BACKGROUND_CLOSE, wait_for_obstacle, NULL);
    usleep(1000);
    assert_int_equal(background_pending(BACKGROUND_OTHER), 1);
    assert_int_equal(background_pending(BACKGROUND_CLOSE), 1);
    pthread_mutex_unlock(&obstacle);
    background_drain();
    assert_int_equal(background_pending(BACKGROUND_OTHER), 0);
    background_teardown();
}

static void nothing_waits_behind_what_is_freed(void **state)
{
    (void)state;
    atomic_store(&next_place, 0);
    background_setup(1);
    pthread_mutex_lock(&obstacle);
    background_submit(BACKGROUND_FREE, wait_for_obstacle, NULL);
    for (enum background_kind kind = BACKGROUND_CLOSE; kind < BACKGROUND_KIND_COUNT; kind++)
        background_submit(kind, note, NULL);
    while (atomic_load(&next_place) != BACKGROUND_KIND_COUNT - 1)
        usleep(100);
    assert_int_equal(background_pending(BACKGROUND_FREE), 1);
    pthread_mutex_unlock(&obstacle);
    background_drain();
    background_teardown();
}

static void without_threads_the_caller_works(void **state)
{
    (void)state;
    atomic_store(&next_place, 0);
    background_submit(BACKGROUND_FREE, note, (void *)(uintptr_t)7);
    assert_int_equal(atomic_load(&next_place), 1);
    assert_int_equal(order[0], 7);
    assert_int_equal(background_pending(BACKGROUND_FREE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_keeps_the_order),       cmocka_unit_test(teardown_runs_what_is_left),
        cmocka_unit_test(pending_counts_the_running_one),   cmocka_unit_test(nothing_waits_behind_what_is_freed),
        cmocka_unit_test(without_threads_the_caller_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
