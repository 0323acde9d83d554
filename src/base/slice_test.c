#include "base/slice.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void equal_and_compare(void **state)
{
    (void)state;
    assert_true(slice_equal(SLICE_EMPTY, SLICE("")));
    assert_true(slice_equal(SLICE("a\0b"), slice_make("a\0bc", 3)));
    assert_false(slice_equal(SLICE("a\0b"), SLICE("a\0c")));
    assert_false(slice_equal(SLICE("ab"), SLICE("abc")));
    assert_true(slice_compare(SLICE("a"), SLICE("ab")) < 0);
    assert_true(slice_compare(SLICE("b"), SLICE("ab")) > 0);
    assert_true(slice_compare(SLICE("\xff"), SLICE("a")) > 0);
    assert_int_equal(slice_compare(SLICE_EMPTY, SLICE("")), 0);
    assert_true(slice_starts_with(SLICE("abc"), SLICE("ab")));
    assert_false(slice_starts_with(SLICE("a"), SLICE("ab")));
    assert_true(slice_equal(slice_skip(SLICE("abc"), 1), SLICE("bc")));
}

static void case_is_for_ascii_letters_alone(void **state)
{
    (void)state;
    assert_true(slice_equal_text_nocase(SLICE("GeT"), "gEt"));
    assert_false(slice_equal_text_nocase(SLICE("get"), "gets"));
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            char x = (char)a, y = (char)b;
            int letters = a != b && (a | 32) == (b | 32) && (a | 32) >= 'a' && (a | 32) <= 'z';

            assert_int_equal(slice_equal_nocase(slice_make(&x, 1), slice_make(&y, 1)), a == b || letters);
        }
    }
}

static void compare_is_an_order(void **state)
{
    struct random random = test_random("compare_is_an_order");

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        char bytes[3][4];
        struct slice s[3];

        for (unsigned i = 0; i < 3; i++) {
            for (unsigned j = 0; j < 4; j++)
                bytes[i][j] = (char)(random_below(&random, 3) * 100);
            s[i] = slice_make(bytes[i], random_below(&random, 5));
        }
        assert_int_equal(slice_compare(s[0], s[1]) == 0, slice_equal(s[0], s[1]));
        assert_int_equal(slice_compare(s[0], s[1]) < 0, slice_compare(s[1], s[0]) > 0);
        if (slice_compare(s[0], s[1]) < 0 && slice_compare(s[1], s[2]) < 0)
            assert_true(slice_compare(s[0], s[2]) < 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_and_compare),
        cmocka_unit_test(case_is_for_ascii_letters_alone),
        cmocka_unit_test(compare_is_an_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
