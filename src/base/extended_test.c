#include "base/extended.h"

#include "base/random.h"
#include "base/test_seed.h"

#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The processor and its C library say what is right. */
#if LDBL_MANT_DIG == 64 && defined(__GLIBC__) && !defined(__clang__)

enum { NUMBER_BYTES = 10, TEXT_BYTES = 128 };

static bool are_same(long double expected, extended_wide number)
{
    long double narrow = (long double)number;

    return (extended_wide)narrow == number && memcmp(&expected, &narrow, NUMBER_BYTES) == 0;
}

static void check_text(const char *text)
{
    extended_wide below, above, number;
    long double expected;
    bool is_in_range;

    errno = 0;
    expected = strtold(text, NULL);
    is_in_range = errno != ERANGE || (!isinf(expected) && expected != 0);
    fesetround(FE_DOWNWARD);
    below = strtof128(text, NULL);
    fesetround(FE_UPWARD);
    above = strtof128(text, NULL);
    fesetround(FE_TONEAREST);
    if (extended_between(below, above, &number) != is_in_range || (is_in_range && !are_same(expected, number)))
        fail_msg("%s: not %.25Lg", text, expected);
}

static void chosen_texts_are_read_as_here(void **state)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "1",
        "-1.5",
        "0.1",
        "3.3",
        "inf",
        "-inf",
        "1e4000",
        "1e-4000",
        "1e4932",
        "-1e4933",
        "1e5000",
        "1e-4940",
        "-1e-4950",
        "1e-4951",
        "1.8e-4951",
        "1.9e-4951",
        "1e-4960",
        "-1e-5000",
        "1e-99999",
        "-1e99999",
        "18446744073709551615",
        "18446744073709551616.5",
        "36893488147419103233",
        "36893488147419103235",
        /* half of the last place, a little below and above, further than 113 bits */
        "36893488147419103232.99999999999999999999999999999999999999999999",
        "36893488147419103233.00000000000000000000000000000000000000000001",
        "-36893488147419103235.0000000000000000000000000000000000000000001",
        "0x1.fffffffffffffffep16383",
        "0x1.fffffffffffffffefp16383",
        "0x1.ffffffffffffffffp16383",
        "0x1p-16445",
        "0x1p-16446",
        "0x1.8p-16446",
        "0x1.0000000000000001p-1",
        "0x1.0000000000000003p-1",
        "0x1.00000000000000010000000000000000000000001p0",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        check_text(texts[i]);
}

static void random_texts_are_read_as_here(void **state)
{
    struct random random = test_random("random_texts_are_read_as_here");
    char text[TEXT_BYTES];

    (void)state;
    for (int round = 0; round < 20000; round++) {
        const unsigned digits = 1 + (unsigned)random_below(&random, 60);
        unsigned size = 0;

        if (random_below(&random, 2) == 0)
            text[size++] = '-';
        for (unsigned i = 0; i < digits; i++) {
            text[size++] = (char)('0' + random_below(&random, 10));
            if (i == digits / 2)
                text[size++] = '.';
        }
        snprintf(text + size, TEXT_BYTES - size, "e%d",
                 (int)random_below(&random, 40) - 20 + (random_below(&random, 8) == 0 ? -4940 : 0));
        check_text(text);
    }
}

static long double any_number(struct random *random, int exponent)
{
    const long double mantissa = (long double)(random_u64(random) >> random_below(random, 64));

    return ldexpl(random_below(random, 2) == 0 ? mantissa : -mantissa, exponent);
}

static void check_sum(long double a, long double b)
{
    if (!are_same(a + b, extended_add((extended_wide)a, (extended_wide)b)))
        fail_msg("%La + %La is not %La", a, b, a + b);
}

static void sums_are_rounded_as_here(void **state)
{
    static const int exponents[] = {0, -16445, 16319};
    struct random random = test_random("sums_are_rounded_as_here");

    (void)state;
    for (int round = 0; round < 200000; round++) {
        const int exponent = exponents[random_below(&random, 3)];
        const int apart = (int)random_below(&random, 200) * (exponent == 16319 ? -1 : 1);

        check_sum(any_number(&random, exponent), any_number(&random, exponent + apart));
        check_sum(any_number(&random, exponent + apart), any_number(&random, exponent));
    }
    check_sum(0x1p63L + 1, 0.5L); /* exactly between two */
    check_sum(0x1p63L + 2, 0.5L);
    check_sum(0x1p63L + 1, 0x1p-60L); /* further down than 113 bits */
    check_sum(0x1.8p64L, 1 - 0x1p-64L);
    check_sum(0x1p64L, 1 + 0x1p-63L);
    check_sum(0x1p64L + 2, -1 - 0x1p-63L);
    check_sum(INFINITY, -1);
    check_sum(LDBL_MAX, LDBL_MAX);
    check_sum(-LDBL_MAX, LDBL_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chosen_texts_are_read_as_here),
        cmocka_unit_test(random_texts_are_read_as_here),
        cmocka_unit_test(sums_are_rounded_as_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 0;
}

#endif
