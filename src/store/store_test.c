#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct store *store;
static uint64_t woken_mask;

static void note_wake(uint64_t wait_mask)
{
    woken_mask |= wait_mask;
}

static void setup(void (*wake)(uint64_t wait_mask))
{
    store = store_create(2, 1);
    store->wake = wake;
    woken_mask = 0;
}

static void take(struct stripe *stripe)
{
    assert_true(spinlock_try(&stripe->lock));
}

static void who_waits_is_woken_by_the_release(void **state)
{
    struct stripe *stripe;

    (void)state;
    setup(note_wake);
    stripe = &store->stripes[1];
    take(stripe);
    assert_true(stripe_wait(stripe, 3));
    assert_true(stripe_wait(stripe, 63));
    stripe_release(store, stripe);
    assert_true(woken_mask == (UINT64_C(1) << 3 | UINT64_C(1) << 63));
    woken_mask = 0;
    take(stripe);
    stripe_release(store, stripe);
    assert_true(woken_mask == 0); /* once */
    store_destroy(&store);
}

static void a_free_stripe_is_not_waited_for(void **state)
{
    (void)state;
    setup(note_wake);
    assert_false(stripe_wait(&store->stripes[0], 5));
    take(&store->stripes[0]);
    stripe_release(store, &store->stripes[0]);
    assert_true(woken_mask == 0);
    store_destroy(&store);
}

/* The holder has released the lock and not yet read the mask, when a second request of the waiting thread finds the
 * lock free. The first one's wake must not be withdrawn with the second one's. */
NO_THREAD_SAFETY_ANALYSIS static void a_wait_outlives_another_of_its_thread(void **state) /* take() locks */
{
    struct stripe *stripe;

    (void)state;
    setup(note_wake);
    stripe = &store->stripes[0];
    take(stripe);
    assert_true(stripe_wait(stripe, 5));
    spinlock_release(&stripe->lock);
    assert_false(stripe_wait(stripe, 5));
    take(stripe);
    stripe_release(store, stripe);
    assert_true(woken_mask == UINT64_C(1) << 5);
    store_destroy(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_is_woken_by_the_release),
        cmocka_unit_test(a_free_stripe_is_not_waited_for),
        cmocka_unit_test(a_wait_outlives_another_of_its_thread),
    };

    fence_setup();
    spinlock_excuse_stripes(true); /* one thread both holds a stripe and waits for it */
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
