#include "tools/benchmark/distribution.h"

#include "base/compiler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { KEYS = 50, DRAWS = 200000 };

static struct random dice;

static int reset(void **state)
{
    (void)state;
    random_seed(&dice, 7);
    return 0;
}

static void count_draws(const char *text, uint64_t counts[KEYS])
{
    struct distribution distribution;

    assert_null(distribution_parse(text, &distribution));
    distribution_begin(&distribution, KEYS);
    for (int i = 0; i < KEYS; i++)
        counts[i] = 0;
    for (int i = 0; i < DRAWS; i++) {
        const uint64_t key = distribution_draw(&distribution, &dice);

        assert_true(key < KEYS);
        counts[key]++;
    }
}

/* The square of the distance from what is expected, each in units of its own spread: about as many as there are keys,
 * and for 50 keys above 100 only once in 40,000 seeds. */
static void expect_shape(const uint64_t counts[KEYS], double (*weight)(int key))
{
    double total = 0, apart = 0;

    for (int i = 0; i < KEYS; i++)
        total += weight(i);
    for (int i = 0; i < KEYS; i++) {
        const double expected = weight(i) / total * DRAWS, difference = (double)counts[i] - expected;

        apart += difference * difference / expected;
    }
    assert_true(apart < 100);
}

static double equal(int key)
{
    (void)key;
    return 1;
}

static double zipf_usual(int key)
{
    return pow(key + 1, -0.99);
}

static double zipf_one(int key)
{
    return pow(key + 1, -1);
}

static double zipf_steep(int key)
{
    return pow(key + 1, -2.5);
}

static double newest_first(int key)
{
    return pow(KEYS - key, -0.99);
}

static double bell(int key)
{
    const double from = (key - KEYS / 2.0) / 10, to = (key + 1 - KEYS / 2.0) / 10;

    return erf(to / sqrt(2)) - erf(from / sqrt(2));
}

static void draws_have_their_shape(void **state)
{
    static const struct {
        const char *text;
        double (*weight)(int key);
    } rows[] = {
        {"uniform", equal},       {"zipf", zipf_usual},     {"zipf:0.99", zipf_usual}, {"zipf:1", zipf_one},
        {"zipf:2.5", zipf_steep}, {"latest", newest_first}, {"gaussian:10", bell},
    };
    uint64_t counts[KEYS];

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        count_draws(rows[i].text, counts);
        expect_shape(counts, rows[i].weight);
    }
}

static void a_sequence_has_each_key_in_turn(void **state)
{
    struct distribution distribution;

    (void)state;
    assert_null(distribution_parse("sequential", &distribution));
    distribution_begin(&distribution, 3);
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(distribution_draw(&distribution, &dice), i % 3);
}

static void new_keys_are_the_latest(void **state)
{
    struct distribution distribution;
    uint64_t newest = 0;

    (void)state;
    assert_null(distribution_parse("latest:3", &distribution));
    distribution_begin(&distribution, 1000);
    for (uint64_t i = 0; i < 500; i++)
        assert_int_equal(distribution_grow(&distribution), 1000 + i);
    for (int i = 0; i < 1000; i++)
        newest += distribution_draw(&distribution, &dice) == 1499;
    assert_true(newest > 700); /* 1 / zeta(3) = 0.83 */
}

static void one_key_and_very_many(void **state)
{
    static const char *const all[] = {"uniform", "gaussian", "zipf", "latest", "sequential", "zipf:1", "zipf:20"};
    struct distribution distribution;

    (void)state;
    for (size_t i = 0; i < countof(all); i++) {
        assert_null(distribution_parse(all[i], &distribution));
        distribution_begin(&distribution, 1);
        assert_int_equal(distribution_draw(&distribution, &dice) % 1, 0);
        distribution_begin(&distribution, UINT64_C(1000000000000));
        for (int draw = 0; draw < 1000; draw++)
            assert_true(distribution_draw(&distribution, &dice) < UINT64_C(1000000000000));
    }
}

static void what_is_none_is_refused(void **state)
{
    static const char *const wrong[] = {"",       "zip",     "zipfer",  "zipf:",     "zipf:0",      "zipf:-1",
                                        "zipf:x", "zipf:21", "zipf:1x", "uniform:2", "gaussian:nan"};
    struct distribution distribution;

    (void)state;
    for (size_t i = 0; i < countof(wrong); i++)
        assert_non_null(distribution_parse(wrong[i], &distribution));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(draws_have_their_shape, reset),
        cmocka_unit_test_setup(a_sequence_has_each_key_in_turn, reset),
        cmocka_unit_test_setup(new_keys_are_the_latest, reset),
        cmocka_unit_test_setup(one_key_and_very_many, reset),
        cmocka_unit_test(what_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
