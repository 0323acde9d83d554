#include "base/random.h"

#include <stdbool.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void same_seed_same_numbers(void **state)
{
    struct random a, b, c;

    (void)state;
    random_seed(&a, 1);
    random_seed(&b, 1);
    random_seed(&c, 2);
    for (unsigned i = 0; i < 1000; i++)
        assert_true(random_u64(&a) == random_u64(&b));
    assert_true(random_u64(&a) != random_u64(&c));
}

static void below_is_even(void **state)
{
    struct random random;
    unsigned counts[7] = {0};

    (void)state;
    random_seed(&random, 42);
    for (unsigned i = 0; i < 70000; i++)
        counts[random_below(&random, 7)]++;
    for (unsigned i = 0; i < 7; i++)
        assert_in_range(counts[i], 9600, 10400); /* 4 standard deviations */
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(random_below(&random, 1), 0);
        assert_true(random_below(&random, UINT64_MAX) < UINT64_MAX);
        assert_true(random_below(&random, (UINT64_C(1) << 63) + 1) <= UINT64_C(1) << 63);
        double unit = random_unit(&random);
        assert_true(unit >= 0 && unit < 1);
    }
}

static void secrets_differ(void **state)
{
    char a[41] = {0}, b[41] = {0};
    char long_one[1000];

    (void)state;
    random_hex(a, 40);
    random_hex(b, 40);
    assert_true(strcmp(a, b) != 0);
    assert_int_equal(strspn(a, "0123456789abcdef"), 40);
    assert_int_equal(a[40], '\0');
    random_hex(long_one, sizeof(long_one));
    assert_true(memcmp(long_one, long_one + 64, 64) != 0);
    assert_ptr_equal(random_thread(), random_thread());
    assert_true(random_u64(random_thread()) != random_u64(random_thread()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_same_numbers),
        cmocka_unit_test(below_is_even),
        cmocka_unit_test(secrets_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
