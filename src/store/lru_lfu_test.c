#include "store/lru_lfu.h"

#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct lru_lfu_rule usual = {.log_factor = 10, .decay_minutes = 1};

static int64_t minutes(int64_t count)
{
    return count * 60000;
}

static void a_new_key_begins_with_five(void **state)
{
    (void)state;
    assert_int_equal(lru_lfu_count(lru_lfu_fresh(minutes(77)), minutes(77), usual), LFU_FRESH_COUNT);
}

static void counts_fall_with_time(void **state)
{
    const struct lru_lfu_rule slow = {.log_factor = 10, .decay_minutes = 3}, never = {.log_factor = 10};
    uint32_t clock = lru_lfu_fresh(minutes(100));

    (void)state;
    assert_int_equal(lru_lfu_count(clock, minutes(101), usual), 4);
    assert_int_equal(lru_lfu_count(clock, minutes(105), usual), 0);
    assert_int_equal(lru_lfu_count(clock, minutes(9000), usual), 0);
    assert_int_equal(lru_lfu_count(clock, minutes(102), slow), 5);
    assert_int_equal(lru_lfu_count(clock, minutes(103), slow), 4);
    assert_int_equal(lru_lfu_count(clock, minutes(9000), never), 5);
    /* The minute goes round after 65,536. */
    assert_int_equal(lru_lfu_count(lru_lfu_fresh(minutes(0xFFFF)), minutes(0x10001), usual), 3);
}

static void few_uses_count_one_by_one(void **state)
{
    uint32_t clock = 0;

    (void)state;
    for (uint32_t i = 1; i <= LFU_FRESH_COUNT + 1; i++) {
        clock = lru_lfu_add(clock, 0, usual, i * 7919);
        assert_int_equal(lru_lfu_count(clock, 0, usual), i);
    }
}

static void it_ends_at_255(void **state)
{
    const struct lru_lfu_rule every = {.log_factor = 0};
    uint32_t clock = lru_lfu_fresh(0);

    (void)state;
    for (int i = 0; i < 300; i++)
        clock = lru_lfu_add(clock, 0, every, 12345);
    assert_int_equal(lru_lfu_count(clock, 0, every), LFU_MOST_COUNT);
}

/* The chance to climb from 5 + a is 1 in 10 a, so n uses lead to about 5 + sqrt(n / 5). */
static void many_uses_count_less_and_less(void **state)
{
    struct random random = test_random(__func__);
    uint32_t clock = lru_lfu_fresh(0), count;

    (void)state;
    for (int i = 0; i < 5 * 60 * 60; i++)
        clock = lru_lfu_add(clock, 0, usual, random_u64(&random));
    count = lru_lfu_count(clock, 0, usual);
    assert_in_range(count, 45, 85); /* 5 + 60, give or take */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_key_begins_with_five),    cmocka_unit_test(counts_fall_with_time),
        cmocka_unit_test(few_uses_count_one_by_one),     cmocka_unit_test(it_ends_at_255),
        cmocka_unit_test(many_uses_count_less_and_less),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
