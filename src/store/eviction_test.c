#include "store/eviction.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { STRIPES = 4, SLOW_US = 3000 };

static struct store *store;
static struct store_counters counters;
static struct access access_;
static unsigned destroyed;

/* A value that takes its time. */
static void slow_destroy(struct value value)
{
    const uint64_t end_us = clock_monotonic_us() + SLOW_US;

    (void)value;
    destroyed++;
    while (clock_monotonic_us() < end_us)
        continue;
}

static struct value no_copy(struct value value)
{
    return value;
}

static uint64_t few_bytes(struct value value, uint64_t samples)
{
    (void)value;
    (void)samples;
    return 1;
}

static uint64_t large_effort(struct value value)
{
    (void)value;
    return 1000;
}

static int begin(void **state)
{
    static const struct value_ops slow = {.destroy = slow_destroy,
                                          .copy = no_copy,
                                          .memory_bytes = few_bytes,
                                          .free_effort = large_effort};

    (void)state;
    memset(&counters, 0, sizeof(counters));
    destroyed = 0;
    store = store_create(STRIPES, 1);
    store_set_type(store, TYPE_HASH, &(const struct store_type){.ops = &slow});
    access_init(&access_, store, &counters);
    return 0;
}

static int end(void **state)
{
    (void)state;
    store_destroy(&store);
    return 0;
}

static void put(const char *name, int64_t expire_ms)
{
    struct key key = key_make(slice_from_text(name));
    struct change change;

    access_begin(&access_, 1000, true);
    change_begin(&change, &access_, 0, &key);
    change_put_value(&change, TYPE_HASH, (struct value){&destroyed, ENCODING_RAW}, expire_ms);
    change_end(&change, EVENT_HASH, NULL);
    access_begin(&access_, 1000, false);
}

/* By each way to choose a key: the time of its deletion has that of its value's destruction, after the stripe's
 * release. */
static void deletions_are_timed(void **state)
{
    static const enum eviction_measure measures[] = {EVICTION_LEAST_RECENT, EVICTION_LEAST_FREQUENT, EVICTION_RANDOM,
                                                     EVICTION_SHORTEST_TTL};

    (void)state;
    for (size_t i = 0; i < countof(measures); i++) {
        struct eviction_rule rule = {.measure = measures[i],
                                     .samples = 5,
                                     .times_deletions = true,
                                     .expiring_only = measures[i] == EVICTION_SHORTEST_TTL};
        struct eviction_pool pool = {.count = 0};

        put("key", 100000);
        assert_true(eviction_step(&access_, &pool, &rule) != 0);
        assert_int_equal(destroyed, 2 * i + 1);
        assert_null(access_.garbage);
        assert_true(pool.delete_us >= SLOW_US);
        assert_int_equal(eviction_step(&access_, &pool, &rule), 0);
        assert_int_equal(pool.delete_us, 0);
        put("key", 100000);
        rule.times_deletions = false;
        assert_true(eviction_step(&access_, &pool, &rule) != 0);
        assert_int_equal(pool.delete_us, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(deletions_are_timed, begin, end),
    };

    fence_setup();
    hash_setup();
    return cmocka_run_group_tests_name("eviction", tests, NULL, NULL);
}
