/* Threads take the turn, alone or beside each other, and wait for a wake where they do not get it. */
#include "server/core/script_turn.h"

#include "base/compiler.h"
#include "base/random.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 4, ROUNDS = 20000 };

static struct script_turn turn;
static _Atomic uint64_t woken; /* bit i: thread i */

static void wake(uint64_t mask)
{
    (void)atomic_fetch_or(&woken, mask);
}

static struct store store = {.wake = wake};

static int set_up(void **state)
{
    (void)state;
    fence_setup();
    memset(&turn, 0, sizeof(turn));
    script_turn_init(&turn);
    atomic_store(&woken, 0);
    return 0;
}

static void one_alone_or_several_beside(void **state)
{
    (void)state;
    assert_true(script_turn_join(&turn, &store, false, 1));
    assert_true(script_turn_join(&turn, &store, false, 1));
    assert_false(script_turn_take(&turn, &store, 1));
    script_turn_leave(&turn, &store);
    assert_false(script_turn_take(&turn, &store, 1));
    script_turn_leave(&turn, &store);
    assert_true(script_turn_take(&turn, &store, 1));
    assert_false(script_turn_join(&turn, &store, false, 1));
    assert_false(script_turn_is_shared(&turn));
    script_turn_give(&turn, &store);
    assert_true(script_turn_join(&turn, &store, false, 1));
    script_turn_leave(&turn, &store);
    assert_int_equal(atomic_load(&woken), 0);
}

static void who_waits_to_be_alone_holds_off_others(void **state)
{
    (void)state;
    assert_true(script_turn_join(&turn, &store, false, 1));
    assert_true(script_turn_join(&turn, &store, false, 1));
    assert_false(script_turn_take(&turn, &store, 1));
    assert_true(script_turn_wait(&turn, 5));
    assert_false(script_turn_join(&turn, &store, false, 1)); /* behind it */
    assert_true(script_turn_wait(&turn, 6));
    assert_true(script_turn_join(&turn, &store, true, 1)); /* past it */
    script_turn_leave(&turn, &store);
    script_turn_leave(&turn, &store);
    assert_int_equal(atomic_load(&woken), 0);
    script_turn_leave(&turn, &store); /* the last one wakes */
    assert_int_equal(atomic_load(&woken), 1U << 5 | 1U << 6);
    assert_true(script_turn_take(&turn, &store, 1));
    spinlock_excuse_stripes(true); /* in place of another thread */
    assert_true(script_turn_wait(&turn, 6));
    spinlock_excuse_stripes(false);
    atomic_store(&woken, 0);
    script_turn_give(&turn, &store);
    assert_int_equal(atomic_load(&woken), 1U << 6);
    assert_false(script_turn_wait(&turn, 6)); /* it is free */
    assert_true(script_turn_join(&turn, &store, false, 1));
    script_turn_leave(&turn, &store);
}

static _Atomic int alone, beside; /* who is there, as the threads count it */
static _Atomic unsigned faults;

/* Until the wake. */
static void sleep_for_turn(unsigned index)
{
    if (!script_turn_wait(&turn, index))
        return;
    while ((atomic_fetch_and(&woken, ~(UINT64_C(1) << index)) >> index & 1) == 0)
        sched_yield();
}

static void be_alone(unsigned index)
{
    while (!script_turn_take(&turn, &store, 10))
        sleep_for_turn(index);
    assert_true(script_turn_is_mine(&turn));
    if (atomic_fetch_add(&alone, 1) != 0)
        (void)atomic_fetch_add(&faults, 1);
    for (unsigned i = 0; i < 50; i++) { /* who joined a moment too late is still there */
        if (atomic_load(&beside) != 0)
            (void)atomic_fetch_add(&faults, 1);
        fence_pause();
    }
    (void)atomic_fetch_sub(&alone, 1);
    script_turn_give(&turn, &store);
}

static void be_beside(unsigned index)
{
    while (!script_turn_join(&turn, &store, false, 10))
        sleep_for_turn(index);
    (void)atomic_fetch_add(&beside, 1);
    if (atomic_load(&alone) != 0)
        (void)atomic_fetch_add(&faults, 1);
    (void)atomic_fetch_sub(&beside, 1);
    script_turn_leave(&turn, &store);
}

static void *run(void *argument)
{
    const unsigned index = (unsigned)(uintptr_t)argument;
    struct random random;

    random_seed(&random, index);
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (random_below(&random, 8) == 0)
            be_alone(index);
        else
            be_beside(index);
    }
    return NULL;
}

/* No thread sleeps forever, and nobody is beside one that is alone. */
static void threads_exclude_each_other_and_are_woken(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&faults), 0);
    assert_false(script_turn_is_shared(&turn));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_alone_or_several_beside, set_up),
        cmocka_unit_test_setup(who_waits_to_be_alone_holds_off_others, set_up),
        cmocka_unit_test_setup(threads_exclude_each_other_and_are_woken, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
