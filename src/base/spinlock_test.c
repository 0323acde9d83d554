#include "base/spinlock.h"
#include "base/background.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/test_dies.h"
#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct spinlock held, spare;
static _Atomic bool is_held, may_go;
static _Atomic unsigned jobs_done;

static void hold(void *argument)
{
    (void)argument;
    spinlock_acquire(&held);
    atomic_store(&is_held, true);
    while (!atomic_load(&may_go))
        fence_pause();
    spinlock_release(&held);
}

/* The exit code of a child that runs this. */
static int in_child(void (*run)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        run();
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void take_held(void)
{
    spinlock_alone();
    spinlock_acquire(&held);
}

static void take_spare(void)
{
    spinlock_alone();
    spinlock_acquire(&spare);
    spinlock_release(&spare);
}

static void child_does_not_wait_for_a_thread_that_is_not_there(void **state)
{
    struct thread thread = {0};

    (void)state;
    spinlock_init(&held, LOCK_REGISTRY);
    spinlock_init(&spare, LOCK_REGISTRY);
    thread_start(&thread, "holds", hold, NULL);
    while (!atomic_load(&is_held))
        fence_pause();
    assert_int_equal(in_child(take_held), SPINLOCK_FORSAKEN);
    assert_int_equal(in_child(take_spare), 0);
    atomic_store(&may_go, true);
    thread_join(&thread);
}

/* Counted are locks that another thread holds, by rank; not those that are free. */
static void who_finds_a_lock_held_counts_it(void **state)
{
    struct thread thread = {0};

    (void)state;
    memset(spinlock_waits, 0, sizeof(spinlock_waits));
    atomic_store(&is_held, false);
    atomic_store(&may_go, false);
    spinlock_init(&held, LOCK_JOURNAL);
    spinlock_init(&spare, LOCK_JOURNAL);
    thread_start(&thread, "holds", hold, NULL);
    while (!atomic_load(&is_held))
        fence_pause();
    assert_true(spinlock_acquire_bounded(&spare, 10));
    spinlock_release(&spare);
    spinlock_acquire(&spare);
    spinlock_release(&spare);
    assert_int_equal(spinlock_waits[LOCK_JOURNAL], 0);
    assert_false(spinlock_acquire_bounded(&held, 10));
    assert_int_equal(spinlock_waits[LOCK_JOURNAL], 1);
    atomic_store(&may_go, true);
    thread_join(&thread);
    assert_true(spinlock_acquire_bounded(&held, 10));
    spinlock_release(&held);
    assert_int_equal(spinlock_waits[LOCK_JOURNAL], 1);
    for (unsigned rank = 0; rank < LOCK_RANK_COUNT; rank++)
        assert_true(rank == LOCK_JOURNAL || spinlock_waits[rank] == 0);
}

static void count_job(void *argument)
{
    (void)argument;
    atomic_fetch_add(&jobs_done, 1);
}

static void submit_and_drain(void)
{
    unsigned before = atomic_load(&jobs_done);

    background_submit(BACKGROUND_FREE, count_job, NULL);
    background_drain();
    if (atomic_load(&jobs_done) != before + 1)
        _exit(1);
}

static void child_does_work_of_the_background_itself(void **state)
{
    (void)state;
    background_setup(1);
    for (int i = 0; i < 50; i++) {
        background_submit(BACKGROUND_FREE, count_job, NULL);
        assert_int_equal(in_child(submit_and_drain), 0);
    }
    background_teardown();
}

static struct spinlock stripe;

#ifdef KEYDB_DEBUG /* see spinlock_assert_may_sleep */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void take_mutex_under_registry(void)
{
    spinlock_acquire(&spare);
    mutex_lock(&mutex);
}

static void open_file_under_stripe(void)
{
    spinlock_acquire(&stripe);
    if (file_remove("/there/is/none") != STATUS_NOT_FOUND)
        _exit(1);
}

static void submit_after_release(void)
{
    spinlock_acquire(&stripe);
    spinlock_release(&stripe);
    background_submit(BACKGROUND_FREE, count_job, NULL);
}

static void submit_under_excused_stripe(void)
{
    spinlock_excuse_stripes(true);
    spinlock_acquire(&stripe);
    background_submit(BACKGROUND_FREE, count_job, NULL);
}

static void submit_under_registry_of_excused(void)
{
    spinlock_excuse_stripes(true);
    spinlock_acquire(&spare);
    background_submit(BACKGROUND_FREE, count_job, NULL);
}

static void who_holds_a_lock_neither_sleeps_nor_asks_the_system(void **state)
{
    (void)state;
    spinlock_init(&spare, LOCK_REGISTRY);
    spinlock_init(&stripe, LOCK_STRIPE);
    assert_true(dies(take_mutex_under_registry));
    assert_true(dies(open_file_under_stripe));
    assert_false(dies(submit_after_release));
    assert_false(dies(submit_under_excused_stripe));
    assert_true(dies(submit_under_registry_of_excused));
}
#endif

static void release_free(void)
{
    spinlock_release(&stripe);
}

static void acquire_twice(void)
{
    spinlock_acquire(&stripe);
    spinlock_acquire(&stripe);
}

static void hold_at_a_door_for_none(void)
{
    spinlock_excuse_stripes(true);
    spinlock_acquire(&stripe);
    spinlock_assert_none_held();
}

static void hold_none_at_a_door_for_none(void)
{
    spinlock_acquire(&stripe);
    spinlock_release(&stripe);
    spinlock_assert_none_held();
}

static void a_lock_is_released_by_its_holder(void **state)
{
    (void)state;
    spinlock_init(&stripe, LOCK_STRIPE);
    assert_true(dies(release_free));
    assert_true(dies(acquire_twice));
    assert_true(dies(hold_at_a_door_for_none));
    assert_false(dies(hold_none_at_a_door_for_none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(child_does_not_wait_for_a_thread_that_is_not_there),
        cmocka_unit_test(who_finds_a_lock_held_counts_it),
        cmocka_unit_test(child_does_work_of_the_background_itself),
#ifdef KEYDB_DEBUG
        cmocka_unit_test(who_holds_a_lock_neither_sleeps_nor_asks_the_system),
#endif
        cmocka_unit_test(a_lock_is_released_by_its_holder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
