#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct numbers {
    uint64_t *items;
    uint32_t count, capacity;
};

static void pushing_keeps_what_is_there(void **state)
{
    struct numbers numbers = {0};

    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        *ARRAY_PUSH(&numbers) = i * i;
        assert_true(numbers.capacity >= numbers.count);
    }
    assert_int_equal(numbers.count, 1000);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(numbers.items[i], i * i);
    ARRAY_FINI(&numbers);
    assert_null(numbers.items);
    assert_int_equal(numbers.count, 0);
    assert_int_equal(numbers.capacity, 0);
}

static void room_is_made_at_once_and_only_where_it_is_short(void **state)
{
    struct numbers numbers = {0};

    (void)state;
    ARRAY_RESERVE(&numbers, 0);
    assert_null(numbers.items);
    ARRAY_RESERVE(&numbers, 500);
    assert_int_equal(numbers.capacity, 500);
    numbers.count = 499;
    ARRAY_RESERVE(&numbers, 1);
    assert_int_equal(numbers.capacity, 500);
    ARRAY_RESERVE(&numbers, 2);
    assert_int_equal(numbers.capacity, 1000);
    ARRAY_FINI(&numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushing_keeps_what_is_there),
        cmocka_unit_test(room_is_made_at_once_and_only_where_it_is_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
