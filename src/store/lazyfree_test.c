/* What waits for the background thread: counted while it waits, and bounded. */
#include "store/lazyfree.h"

#include "base/background.h"
#include "base/mem.h"
#include "store/access_at.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { STRIPES = 8, VALUE_BYTES = (24 << 20) - 4096, BOUND_BYTES = 64 << 20, SLACK_BYTES = 1 << 20, KEYS = 5 };
#define NOW_MS INT64_C(1800000000000)

static struct store *store;
static struct store_counters counters;
static struct access access_;
static pthread_mutex_t obstacle = PTHREAD_MUTEX_INITIALIZER;

static void wait_for_obstacle(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&obstacle);
    pthread_mutex_unlock(&obstacle);
}

static void setup(void)
{
    store = store_create(STRIPES, 1);
    access_init(&access_, store, &counters);
    access_begin(&access_, NOW_MS, true);
    background_setup(1);
}

static void teardown(void)
{
    background_drain();
    background_teardown();
    store_destroy(&store);
}

static struct key key_of(unsigned number)
{
    static char name[16];

    return key_make(slice_make(name, (size_t)snprintf(name, sizeof(name), "key:%u", number)));
}

static void put(unsigned number)
{
    struct blob *blob = blob_create(VALUE_BYTES);
    const struct key key = key_of(number);
    struct change change;

    change_begin(&change, &access_, 0, &key);
    change_put_blob(&change, blob, EXPIRE_NEVER);
    change_end(&change, EVENT_STRING, "set");
    blob_release(&blob);
}

static bool drop(unsigned number)
{
    const struct key key = key_of(number);

    return access_delete_for(&access_, 0, &key, FREE_UNLINK);
}

static uint64_t pending_count(void)
{
    uint64_t pending, done;

    access_background_frees(&pending, &done);
    return pending;
}

static void what_waits_is_counted_and_bounded(void **state)
{
    uint64_t before;

    (void)state;
    setup();
    for (unsigned i = 0; i < KEYS; i++)
        put(i);
    before = mem_used();
    assert_in_range(before, (uint64_t)KEYS * VALUE_BYTES, (uint64_t)BOUND_BYTES * 4 - 1); /* a quarter is less */
    pthread_mutex_lock(&obstacle);
    background_submit(BACKGROUND_FREE, wait_for_obstacle, NULL);
    for (uint64_t i = 0; i < KEYS; i++) {
        const uint64_t waiting = MIN(i + 1, (uint64_t)BOUND_BYTES / VALUE_BYTES + 1);

        assert_true(drop((unsigned)i));
        assert_int_equal(pending_count(), waiting);
        assert_in_range(lazyfree_pending_bytes(), waiting * VALUE_BYTES, waiting * (VALUE_BYTES + (VALUE_BYTES >> 2)));
        assert_in_range(before + SLACK_BYTES - mem_used(), (i + 1 - waiting) * VALUE_BYTES,
                        (i + 1 - waiting + 1) * VALUE_BYTES - 1);
    }
    pthread_mutex_unlock(&obstacle);
    background_drain();
    assert_int_equal(pending_count(), 0);
    assert_int_equal(lazyfree_pending_bytes(), 0);
    assert_in_range(before + SLACK_BYTES - mem_used(), (uint64_t)KEYS * VALUE_BYTES,
                    (uint64_t)(KEYS + 1) * VALUE_BYTES);
    teardown();
}

static void a_flushed_database_waits_with_all_it_took(void **state)
{
    (void)state;
    setup();
    for (unsigned i = 0; i < KEYS; i++)
        put(i);
    pthread_mutex_lock(&obstacle);
    background_submit(BACKGROUND_FREE, wait_for_obstacle, NULL);
    access_flush_all(&access_, true);
    assert_int_equal(pending_count(), KEYS);
    assert_in_range(lazyfree_pending_bytes(), (uint64_t)KEYS * VALUE_BYTES, mem_used());
    pthread_mutex_unlock(&obstacle);
    background_drain();
    assert_int_equal(lazyfree_pending_bytes(), 0);
    teardown();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_is_counted_and_bounded),
        cmocka_unit_test(a_flushed_database_waits_with_all_it_took),
    };

    mem_thread_start();
    fence_setup();
    hash_setup();
    return cmocka_run_group_tests_name("lazyfree", tests, NULL, NULL);
}
