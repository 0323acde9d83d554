#include "commands/string/lcs.h"

#include "base/fault.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 40 };

/* The definition, with every length kept. */
static size_t model_size(struct slice a, struct slice b)
{
    static size_t sizes[MOST + 1][MOST + 1];

    for (size_t i = 0; i <= a.size; i++) {
        for (size_t j = 0; j <= b.size; j++) {
            size_t *cell = &sizes[i][j];

            if (i == 0 || j == 0)
                *cell = 0;
            else if (a.data[i - 1] == b.data[j - 1])
                *cell = sizes[i - 1][j - 1] + 1;
            else
                *cell = sizes[i - 1][j] > sizes[i][j - 1] ? sizes[i - 1][j] : sizes[i][j - 1];
        }
    }
    return sizes[a.size][b.size];
}

/* Runs come from the end to the beginning, apart from each other, equal in both strings, and make up the whole. */
static void check_runs(struct lcs *lcs, struct slice a, struct slice b)
{
    size_t first_end = a.size, second_end = b.size, sum = 0;
    bool before = false;
    struct lcs_run run;

    while (lcs_next_run(lcs, &run)) {
        assert_true(run.size != 0);
        assert_true(run.first_start + run.size <= first_end);
        assert_true(run.second_start + run.size <= second_end);
        assert_false(before && run.first_start + run.size == first_end && run.second_start + run.size == second_end);
        assert_memory_equal(a.data + run.first_start, b.data + run.second_start, run.size);
        first_end = run.first_start;
        second_end = run.second_start;
        sum += run.size;
        before = true;
    }
    assert_int_equal(sum, lcs_size(lcs));
    assert_false(lcs_next_run(lcs, &run)); /* the end stays the end */
}

static void random_strings_agree_with_the_definition(void **state)
{
    struct random random = test_random("lcs");

    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        char first[MOST], second[MOST];
        struct slice a = slice_make(first, random_below(&random, MOST + 1));
        struct slice b = slice_make(second, random_below(&random, MOST + 1));
        uint64_t letters = 1 + random_below(&random, 5);
        struct lcs *lcs;

        for (size_t i = 0; i < MOST; i++) {
            first[i] = (char)('a' + random_below(&random, letters));
            second[i] = (char)('a' + random_below(&random, letters));
        }
        lcs = lcs_create(a, b);
        assert_non_null(lcs);
        assert_int_equal(lcs_size(lcs), model_size(a, b));
        check_runs(lcs, a, b);
        lcs_destroy(&lcs);
        assert_null(lcs);
    }
}

static void known_example_takes_the_known_runs(void **state)
{
    struct lcs *lcs = lcs_create(SLICE("ohmytext"), SLICE("mynewtext"));
    struct lcs_run run;

    (void)state;
    assert_non_null(lcs);
    assert_int_equal(lcs_size(lcs), 6);
    assert_true(lcs_next_run(lcs, &run));
    assert_int_equal(run.first_start, 4);
    assert_int_equal(run.second_start, 5);
    assert_int_equal(run.size, 4);
    assert_true(lcs_next_run(lcs, &run));
    assert_int_equal(run.first_start, 2);
    assert_int_equal(run.second_start, 0);
    assert_int_equal(run.size, 2);
    assert_false(lcs_next_run(lcs, &run));
    lcs_destroy(&lcs);
}

static void among_equals_the_first_string_keeps_its_end(void **state)
{
    struct lcs *lcs = lcs_create(SLICE("ab"), SLICE("ba"));
    struct lcs_run run;

    (void)state;
    assert_non_null(lcs);
    assert_true(lcs_next_run(lcs, &run));
    assert_int_equal(run.first_start, 1); /* "b" */
    assert_int_equal(run.second_start, 0);
    lcs_destroy(&lcs);
}

static void lack_of_memory_is_told(void **state)
{
    unsigned failures = 0;

    (void)state;
    for (uint64_t nth = 0; fault_arm(FAULT_MEMORY, nth); nth++) {
        struct lcs *lcs = lcs_create(SLICE("some text"), SLICE("other text"));

        assert_int_equal(fault_fired(), lcs == NULL);
        failures += lcs == NULL;
        lcs_destroy(&lcs);
    }
    assert_int_equal(failures, 2); /* two allocations */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_strings_agree_with_the_definition),
        cmocka_unit_test(known_example_takes_the_known_runs),
        cmocka_unit_test(among_equals_the_first_string_keeps_its_end),
        cmocka_unit_test(lack_of_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
