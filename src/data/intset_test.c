#include "data/intset.h"

#include "base/mem.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST = 600 };

/* The model: numbers in no order. */
static int64_t model[MOST];
static unsigned model_count;

static unsigned model_find(int64_t number)
{
    unsigned i = 0;

    while (i < model_count && model[i] != number)
        i++;
    return i;
}

static int64_t random_number(struct random *random, unsigned width)
{
    int64_t number = (int64_t)random_below(random, 400) - 200;

    if (width > 1 && random_below(random, 8) == 0)
        return number < 0 ? INT64_MIN + 200 + number : INT64_MAX - 200 + number;
    if (width > 0 && random_below(random, 4) == 0)
        return number + (number < 0 ? -100000 : 100000);
    return number;
}

static void same(const struct intset *set)
{
    intset_validate(set);
    assert_int_equal(intset_count(set), model_count);
    for (unsigned i = 0; i < model_count; i++) {
        assert_true(intset_has(set, model[i]));
        if (i > 0)
            assert_true(intset_at(set, i - 1) < intset_at(set, i));
    }
}

static void behaves_like_a_set(void **state)
{
    struct random random = test_random("intset");

    (void)state;
    for (unsigned width = 0; width < 3; width++) {
        struct intset *set = intset_create(), *copy;

        model_count = 0;
        for (int i = 0; i < 5000; i++) {
            int64_t number = random_number(&random, width);
            unsigned index = model_find(number);

            assert_int_equal(intset_has(set, number), index < model_count);
            if (random_below(&random, model_count > 300 ? 4 : 2) > 0) {
                assert_int_equal(intset_remove(&set, number), index < model_count);
                if (index < model_count)
                    model[index] = model[--model_count];
            } else {
                assert_int_equal(intset_add(&set, number), index == model_count);
                if (index == model_count)
                    model[model_count++] = number;
            }
            if (i % 8 == 0)
                same(set);
        }
        same(set);
        copy = intset_copy(set);
        intset_destroy(&set);
        same(copy);
        intset_destroy(&copy);
    }
}

static void damaged_bytes_are_refused(void **state)
{
    struct intset *set = intset_create();
    struct slice bytes;

    (void)state;
    assert_false(intset_check(intset_as_bytes(set)));
    for (int64_t i = 0; i < 10; i++)
        assert_true(intset_add(&set, i * 1000000));
    bytes = intset_as_bytes(set);
    assert_int_equal(bytes.size, 8 + 10 * 4);
    assert_true(intset_check(bytes));
    for (size_t size = 0; size < bytes.size; size++)
        assert_false(intset_check(slice_make(bytes.data, size)));
    ((char *)set)[8 + 4] = 0; /* the second is not above the first any more: 0x0F4240 -> 0x0F4200 is */
    assert_true(intset_check(bytes));
    memset((char *)set + 8 + 4, 0, 4);
    assert_false(intset_check(bytes));
    ((char *)set)[0] = 3;
    assert_false(intset_check(bytes));
    intset_destroy(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behaves_like_a_set),
        cmocka_unit_test(damaged_bytes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
