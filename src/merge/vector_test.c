#include "merge/vector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void an_origin_that_is_not_in_it_has_zero(void **state)
{
    struct merge_vector vector = {0};

    (void)state;
    assert_int_equal(merge_vector_get(&vector, 5), 0);
    assert_false(merge_vector_has(&vector, 5));
    merge_vector_set(&vector, 5, 0);
    assert_true(merge_vector_has(&vector, 5));
    assert_int_equal(merge_vector_get(&vector, 5), 0);
    merge_vector_fini(&vector);
    assert_null(vector.items);
}

static void items_are_in_order_of_their_ids(void **state)
{
    struct merge_vector vector = {0};

    (void)state;
    for (uint64_t i = 0; i < 100; i++)
        merge_vector_set(&vector, i * 37 % 100, i);
    assert_int_equal(vector.count, 100);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(vector.items[i].id, i);
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(merge_vector_get(&vector, i * 37 % 100), i);
    for (uint64_t i = 0; i < 100; i += 2)
        merge_vector_remove(&vector, i);
    merge_vector_remove(&vector, 1000);
    assert_int_equal(vector.count, 50);
    assert_false(merge_vector_has(&vector, 4));
    assert_true(merge_vector_has(&vector, 5));
    merge_vector_fini(&vector);
}

static void it_is_raised_but_never_lowered(void **state)
{
    struct merge_vector vector = {0};

    (void)state;
    assert_true(merge_vector_raise(&vector, 1, 10));
    assert_false(merge_vector_raise(&vector, 1, 10));
    assert_false(merge_vector_raise(&vector, 1, 9));
    assert_int_equal(merge_vector_get(&vector, 1), 10);
    assert_true(merge_vector_raise(&vector, 1, 11));
    assert_true(merge_vector_raise(&vector, 2, 0)); /* it was not in it */
    assert_false(merge_vector_raise(&vector, 2, 0));
    merge_vector_fini(&vector);
}

static void it_covers_what_is_nowhere_above_it(void **state)
{
    struct merge_vector one = {0}, other = {0};

    (void)state;
    assert_true(merge_vector_covers(&one, &other));
    merge_vector_set(&other, 1, 0);
    assert_true(merge_vector_covers(&one, &other));
    merge_vector_set(&other, 1, 5);
    assert_false(merge_vector_covers(&one, &other));
    merge_vector_set(&one, 1, 4);
    merge_vector_set(&one, 2, 9);
    assert_false(merge_vector_covers(&one, &other));
    merge_vector_raise_all(&one, &other);
    assert_true(merge_vector_covers(&one, &other));
    assert_int_equal(merge_vector_get(&one, 2), 9);
    merge_vector_fini(&one);
    merge_vector_fini(&other);
}

/* Along vectors of all lengths, and to ids that are not there, as the plain look-up finds them. */
static void a_walk_finds_what_is_there(void **state)
{
    (void)state;
    for (uint64_t count = 0; count < 70; count++) {
        struct merge_vector vector = {0}, raised = {0}, some = {0};
        struct merge_walk walk = {&vector, 0};

        for (uint64_t i = 0; i < count; i++)
            merge_vector_set(&vector, 3 * i + i % 2, i + 1);
        for (uint64_t id = 0; id < 3 * count + 9; id += 1 + id * count % 5) {
            assert_int_equal(merge_walk_get(&walk, id), merge_vector_get(&vector, id));
            assert_ptr_equal(merge_walk_find(&walk, id), merge_vector_find(&vector, id));
            merge_vector_set(&some, id, id % 7);
        }
        merge_vector_copy(&raised, &some);
        merge_vector_raise_all(&raised, &vector);
        for (uint64_t id = 0; id < 3 * count + 9; id++) {
            const uint64_t one = merge_vector_get(&vector, id), other = merge_vector_get(&some, id);

            assert_int_equal(merge_vector_get(&raised, id), one > other ? one : other);
        }
        assert_true(merge_vector_covers(&raised, &some) && merge_vector_covers(&raised, &vector));
        merge_vector_fini(&vector);
        merge_vector_fini(&raised);
        merge_vector_fini(&some);
    }
}

static void a_copy_is_its_own(void **state)
{
    struct merge_vector one = {0}, copy;

    (void)state;
    merge_vector_copy(&copy, &one);
    assert_int_equal(copy.count, 0);
    merge_vector_set(&one, 1, 5);
    merge_vector_copy(&copy, &one);
    merge_vector_set(&one, 1, 6);
    assert_int_equal(merge_vector_get(&copy, 1), 5);
    merge_vector_fini(&copy);
    merge_vector_fini(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_origin_that_is_not_in_it_has_zero), cmocka_unit_test(items_are_in_order_of_their_ids),
        cmocka_unit_test(it_is_raised_but_never_lowered),       cmocka_unit_test(it_covers_what_is_nowhere_above_it),
        cmocka_unit_test(a_walk_finds_what_is_there),           cmocka_unit_test(a_copy_is_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
