#include "base/heavy_hitters.h"

#include "base/compiler.h"
#include "base/hash.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { NAMES = 400, STEPS = 20000 };

static uint64_t kept_bits = UINT64_MAX; /* of every hash: with few of them everything piles up */

static void add(struct heavy_hitters *hitters, const char *name, uint64_t amount)
{
    heavy_hitters_add(hitters, slice_from_text(name), hash_bytes(name, strlen(name)) & kept_bits, amount);
}

static bool find(const struct heavy_hitters *hitters, const char *name, struct heavy_hitter *hitter)
{
    for (uint32_t i = 0; i < heavy_hitters_count(hitters); i++) {
        *hitter = heavy_hitters_at(hitters, i);
        if (slice_equal_text(hitter->name, name))
            return true;
    }
    return false;
}

static void sums_are_exact_while_there_is_room(void **state)
{
    struct heavy_hitters *hitters = heavy_hitters_create(3);
    struct heavy_hitter hitter;

    (void)state;
    add(hitters, "a", 5);
    add(hitters, "", 1);
    add(hitters, "b", 2);
    add(hitters, "", 7);
    heavy_hitters_validate(hitters);
    assert_int_equal(heavy_hitters_count(hitters), 3);
    assert_true(find(hitters, "", &hitter));
    assert_int_equal(hitter.sum, 8);
    assert_int_equal(hitter.error, 0);
    assert_true(find(hitters, "b", &hitter));
    assert_int_equal(hitter.sum, 2);
    heavy_hitters_destroy(&hitters);
    assert_null(hitters);
    heavy_hitters_destroy(&hitters);
}

static void a_new_name_displaces_the_smallest(void **state)
{
    struct heavy_hitters *hitters = heavy_hitters_create(2);
    struct heavy_hitter hitter;

    (void)state;
    add(hitters, "a", 5);
    add(hitters, "b", 2);
    add(hitters, "c", 1);
    heavy_hitters_validate(hitters);
    assert_int_equal(heavy_hitters_count(hitters), 2);
    assert_false(find(hitters, "b", &hitter));
    assert_true(find(hitters, "c", &hitter));
    assert_int_equal(hitter.sum, 3);
    assert_int_equal(hitter.error, 2);
    heavy_hitters_destroy(&hitters);
}

/* The promises of the header, beside true sums. Small numbers are much more frequent than large ones. */
static void check(uint32_t room, uint64_t bits)
{
    struct random random = test_random(__func__);
    struct heavy_hitters *hitters = heavy_hitters_create(room);
    uint64_t sums[NAMES] = {0}, total = 0;
    struct heavy_hitter hitter;
    char name[16];

    kept_bits = bits;
    for (unsigned step = 0; step < STEPS; step++) {
        const uint64_t number = random_below(&random, random_below(&random, NAMES) + 1);
        const uint64_t amount = random_below(&random, 100);

        snprintf(name, sizeof(name), "n%u", (unsigned)number);
        add(hitters, name, amount);
        sums[number] += amount;
        total += amount;
        if (step % 64 == 0)
            heavy_hitters_validate(hitters);
    }
    heavy_hitters_validate(hitters);
    for (unsigned number = 0; number < NAMES; number++) {
        snprintf(name, sizeof(name), "n%u", number);
        if (!find(hitters, name, &hitter)) {
            assert_true(sums[number] <= total / room);
            continue;
        }
        assert_true(hitter.sum >= sums[number]);
        assert_true(hitter.sum - hitter.error <= sums[number]);
    }
    heavy_hitters_destroy(&hitters);
}

static void sums_are_bounded(void **state)
{
    (void)state;
    for (uint32_t room = 1; room <= 512; room *= 2) {
        check(room, UINT64_MAX);
        check(room, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact_while_there_is_room),
        cmocka_unit_test(a_new_name_displaces_the_smallest),
        cmocka_unit_test(sums_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
