#include "base/number.h"
#include "base/test_seed.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A strict parser accepts exactly the texts that printf prints. */
static int64_t any_i64(struct random *random)
{
    uint64_t bits = random_u64(random) >> random_below(random, 64);

    return (int64_t)(random_below(random, 2) == 0 ? bits : 0 - bits);
}

static void integers_agree_with_printf(void **state)
{
    struct random random = test_random("integers_agree_with_printf");

    (void)state;
    for (unsigned round = 0; round < 300000; round++) {
        int64_t number = any_i64(&random);
        uint64_t power = 1;
        char expected[32], text[NUMBER_I64_SPACE];
        int64_t back;
        uint64_t back_u64;

        for (uint64_t i = random_below(&random, 20); i > 0; i--)
            power *= 10;
        if (round % 3 == 0)
            number = (int64_t)(power + random_below(&random, 3) - 1);
        snprintf(expected, sizeof(expected), "%" PRId64, number);
        assert_int_equal(number_format_i64(text, number), strlen(expected));
        assert_string_equal(text, expected);
        assert_true(number_parse_i64(slice_from_text(text), &back));
        assert_true(back == number);
        snprintf(expected, sizeof(expected), "%" PRIu64, (uint64_t)number);
        assert_int_equal(number_format_u64(text, (uint64_t)number), strlen(expected));
        assert_string_equal(text, expected);
        assert_int_equal(number_digits((uint64_t)number), strlen(expected));
        assert_true(number_parse_u64(slice_from_text(text), &back_u64));
        assert_true(back_u64 == (uint64_t)number);
    }
}

/* A text is accepted if and only if it is what would be printed for some number. */
static void damaged_integers_are_refused(void **state)
{
    struct random random = test_random("damaged_integers_are_refused");

    (void)state;
    for (unsigned round = 0; round < 300000; round++) {
        char text[32], again[32];
        size_t size = number_format_i64(text, any_i64(&random));
        int64_t number = 77;

        if (random_below(&random, 4) == 0)
            memmove(text + 1, text, ++size);
        text[random_below(&random, size)] = "0123456789- +.x\0"[random_below(&random, 16)];
        if (number_parse_i64(slice_make(text, size), &number)) {
            assert_int_equal(number_format_i64(again, number), size);
            assert_memory_equal(again, text, size);
        } else {
            char *end;

            assert_int_equal(number, 77);
            text[size] = '\0';
            errno = 0;
            number = strtoll(text, &end, 10);
            snprintf(again, sizeof(again), "%" PRId64, number);
            assert_false(errno == 0 && end == text + size && strcmp(again, text) == 0);
        }
    }
}

static void edges_of_integers(void **state)
{
    static const char *const bad[] = {"",
                                      "-",
                                      "+1",
                                      "-0",
                                      "00",
                                      "01",
                                      "-01",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "0x1",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "18446744073709551616",
                                      "99999999999999999999",
                                      "100000000000000000000",
                                      "--1"};
    int64_t number;
    uint64_t number_u64;

    (void)state;
    for (size_t i = 0; i < countof(bad); i++)
        assert_false(number_parse_i64(slice_from_text(bad[i]), &number));
    assert_true(number_parse_i64(SLICE("-9223372036854775808"), &number));
    assert_true(number == INT64_MIN);
    assert_true(number_parse_i64(SLICE("9223372036854775807"), &number));
    assert_true(number == INT64_MAX);
    assert_true(number_parse_u64(SLICE("18446744073709551615"), &number_u64));
    assert_true(number_u64 == UINT64_MAX);
    assert_false(number_parse_u64(SLICE("18446744073709551616"), &number_u64));
    assert_false(number_parse_u64(SLICE("-1"), &number_u64));
}

/* As observed at Redis 7.0: ZADD and INCRBYFLOAT. */
static void texts_of_doubles(void **state)
{
    static const char *const bad[] = {"nan",    "-nan", " 1", "1 ",    "\n1",    "1e400",  "-1e400",
                                      "1e-400", "1e",   "+",  "",      "1_0",    "nan(1)", "0x",
                                      "1d",     ".",    "-",  "1.2.3", "1e5000", "i",      "infinite"};
    static const struct {
        const char *text;
        double value;
    } good[] = {{"inf", INFINITY},
                {"+inf", INFINITY},
                {"-INF", -INFINITY},
                {"infinity", INFINITY},
                {"0x10", 16},
                {"0x1p3", 8},
                {"1.", 1},
                {".5", 0.5},
                {"-.5", -0.5},
                {"4e-324", 4.9406564584124654e-324},
                {"1e-310", 1e-310},
                {"+3", 3},
                {"0003.50", 3.5},
                {"-0", 0.0},
                {"123456789012345678", 123456789012345678.0}};
    double number = 77;
    long double wide = 77;
    char zeros[5120];

    (void)state;
    for (size_t i = 0; i < countof(bad); i++) {
        assert_false(number_parse_double(slice_from_text(bad[i]), &number));
        assert_true(number == 77);
        if (strstr(bad[i], "400") == NULL) {
            assert_false(number_parse_long_double(slice_from_text(bad[i]), &wide));
            assert_true(wide == 77);
        }
    }
    for (size_t i = 0; i < countof(good); i++) {
        assert_true(number_parse_double(slice_from_text(good[i].text), &number));
        assert_true(number == good[i].value);
        number = 77;
    }
    assert_false(number_parse_double(SLICE("1\0"), &number));
    assert_false(number_parse_double(SLICE("\0"), &number));
    assert_true(number_parse_double(SLICE("-0"), &number) && signbit(number));
    assert_true(number_parse_long_double(SLICE("1e4000"), &wide));
    memset(zeros, '0', sizeof(zeros));
    assert_true(number_parse_long_double(slice_make(zeros, 5119), &wide));
    assert_false(number_parse_long_double(slice_make(zeros, 5120), &wide));
    assert_true(number_parse_long_double(SLICE("inf"), &wide) && isinf(wide));
}

static void doubles_agree_with_strtod(void **state)
{
    struct random random = test_random("doubles_agree_with_strtod");

    (void)state;
    for (unsigned round = 0; round < 200000; round++) {
        char text[600];
        size_t size = 1 + random_below(&random, round % 1000 == 0 ? 500 : 20);
        double value, number = 77;
        char *end;
        bool fine;

        for (size_t i = 0; i < size; i++)
            text[i] = random_below(&random, 6) != 0 ? (char)('0' + random_below(&random, 10))
                                                    : "+-.eE xinfa"[random_below(&random, 11)];
        text[size] = '\0';
        errno = 0;
        value = strtod(text, &end);
        fine = end == text + size && text[0] != ' ' && !isnan(value) &&
               !(errno == ERANGE && (isinf(value) || value == 0));
        assert_int_equal(number_parse_double(slice_make(text, size), &number), fine);
        assert_true(memcmp(&number, fine ? &value : &(double){77}, sizeof(number)) == 0);
    }
}

static void doubles_come_back(void **state)
{
    struct random random = test_random("doubles_come_back");

    (void)state;
    for (unsigned round = 0; round < 200000; round++) {
        char text[NUMBER_DOUBLE_SPACE], expected[64];
        uint64_t bits = random_u64(&random);
        double number, back;

        memcpy(&number, &bits, sizeof(number));
        if (round % 2 == 0)
            number = (double)any_i64(&random) / (double)(UINT64_C(1) << random_below(&random, 8));
        if (isnan(number))
            continue;
        snprintf(expected, sizeof(expected), "%.17g", number);
        assert_int_equal(number_format_double(text, number), strlen(expected));
        assert_string_equal(text, expected);
        assert_true(number_parse_double(slice_from_text(text), &back));
        assert_true(memcmp(&back, &number, sizeof(back)) == 0);
    }
}

static void check_human(long double number, const char *expected)
{
    char text[NUMBER_LONG_DOUBLE_HUMAN_SPACE];

    assert_int_equal(number_format_long_double_human(text, number), strlen(expected));
    assert_string_equal(text, expected);
}

static void special_forms(void **state)
{
    char text[NUMBER_LONG_DOUBLE_HUMAN_SPACE];

    (void)state;
    assert_int_equal(number_format_double(text, NAN), 3);
    assert_string_equal(text, "nan");
    number_format_double(text, INFINITY);
    assert_string_equal(text, "inf");
    number_format_double_resp3(text, -INFINITY);
    assert_string_equal(text, "-inf");
    number_format_double(text, -0.0);
    assert_string_equal(text, "-0");
    number_format_double(text, 0.1);
    assert_string_equal(text, "0.10000000000000001");
    check_human(0.1L, "0.1");
    check_human(3.0L, "3");
    check_human(1e20L, "100000000000000000000");
    check_human(-0.0L, "0");
    check_human(5e-18L, "0");
    check_human(-1e-19L, "0");
    check_human(1e-17L, "0.00000000000000001");
    check_human(3.14159265358979323846L, "3.14159265358979324");
    check_human(100.0L, "100");
    check_human((long double)INFINITY, "inf");
    assert_int_equal(number_format_long_double_human(text, 1e4900L), 4901);
}

static void memory_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"007", 7},
                {"100b", 100},
                {"1k", 1000},
                {"1KB", 1024},
                {"2m", 2000000},
                {"2Mb", 2 * 1024 * 1024},
                {"3g", UINT64_C(3000000000)},
                {"3gb", UINT64_C(3) << 30},
                {"18446744073709551615", UINT64_MAX},
                {"17179869183gb", UINT64_C(17179869183) << 30}};
    static const char *const bad[] = {"",
                                      "k",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 k",
                                      "1kk",
                                      "1kbb",
                                      "1.5gb",
                                      "0x10",
                                      "10%",
                                      "18446744073709551616",
                                      "17179869184gb"};
    static const struct {
        uint64_t bytes;
        const char *exact;
        const char *human;
    } printed[] = {{0, "0", "0B"},
                   {1000, "1000", "1000B"},
                   {1023, "1023", "1023B"},
                   {1024, "1kb", "1.00K"},
                   {1536, "1536", "1.50K"},
                   {1 << 20, "1mb", "1.00M"},
                   {UINT64_C(3) << 30, "3gb", "3.00G"},
                   {UINT64_C(1) << 40, "1024gb", "1.00T"},
                   {UINT64_MAX, "18446744073709551615", "16.00E"}};
    char text[NUMBER_DOUBLE_SPACE];
    uint64_t bytes;

    (void)state;
    for (size_t i = 0; i < countof(good); i++) {
        assert_true(number_parse_memory(slice_from_text(good[i].text), &bytes));
        assert_true(bytes == good[i].bytes);
    }
    for (size_t i = 0; i < countof(bad); i++)
        assert_false(number_parse_memory(slice_from_text(bad[i]), &bytes));
    for (size_t i = 0; i < countof(printed); i++) {
        assert_int_equal(number_format_memory(text, printed[i].bytes), strlen(printed[i].exact));
        assert_string_equal(text, printed[i].exact);
        assert_int_equal(number_format_bytes_human(text, printed[i].bytes), strlen(printed[i].human));
        assert_string_equal(text, printed[i].human);
    }
}

static void short_doubles(void **state)
{
    static const char *const texts[] = {"0", "0.1", "99.9", "99.99", "50", "100", "1e+300", "0.30000000000000004"};
    char out[NUMBER_DOUBLE_SPACE];

    (void)state;
    for (size_t i = 0; i < countof(texts); i++) {
        assert_int_equal(number_format_double_short(out, strtod(texts[i], NULL)), strlen(texts[i]));
        assert_string_equal(out, texts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_doubles),
        cmocka_unit_test(integers_agree_with_printf),
        cmocka_unit_test(damaged_integers_are_refused),
        cmocka_unit_test(edges_of_integers),
        cmocka_unit_test(texts_of_doubles),
        cmocka_unit_test(doubles_agree_with_strtod),
        cmocka_unit_test(doubles_come_back),
        cmocka_unit_test(special_forms),
        cmocka_unit_test(memory_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
