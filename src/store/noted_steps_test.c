/* Steps come out as they went in, and what they own is released once. */
#include "store/noted_steps.h"

#include "base/compiler.h"
#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 3000, MOST_BYTES = 6000 };

static struct noted_step made[STEPS];
static uint32_t visited, released;

static void make(struct noted_step *step, struct random *dice, uint32_t number)
{
    static char bytes[MOST_BYTES];
    const size_t words = random_below(dice, random_below(dice, 20) == 0 ? MOST_BYTES : 100) + 20;

    memset(bytes, (int)('a' + number % 26), sizeof(bytes));
    *step = (struct noted_step){.place = {number + 1, random_below(dice, 3)},
                                .base = {number, number % 7},
                                .previous = number,
                                .wall = -(int64_t)number,
                                .hash = number * UINT64_C(77),
                                .db = number % 16,
                                .base_overwrote = random_below(dice, 2) == 0,
                                .existed = random_below(dice, 2) == 0,
                                .exists = random_below(dice, 4) != 0,
                                .is_first = random_below(dice, 2) == 0,
                                .owns = random_below(dice, 50) == 0,
                                .words = slice_make(bytes, MIN(words, (size_t)MOST_BYTES)),
                                .undo = slice_make(bytes, random_below(dice, 9) * 8)};
    /* A name is part of the words, or stands elsewhere. */
    step->name = random_below(dice, 2) == 0 ? slice_make(bytes + 7, 11) : SLICE("a name of its own");
}

static void compare(const struct noted_step *step, void *context)
{
    const struct noted_step *other = &made[visited++];
    struct noted_step alike = *step;

    (void)context;
    assert_true(slice_equal(step->name, other->name) || step->name.size == 11);
    assert_int_equal(other->words.size, step->words.size);
    assert_int_equal(other->undo.size, step->undo.size);
    if (step->undo.size != 0)
        assert_int_equal('a' + (visited - 1) % 26, step->undo.data[step->undo.size - 1]);
    assert_int_equal('a' + (visited - 1) % 26, step->words.data[step->words.size - 1]);
    if (step->name.size == 11)
        assert_int_equal('a' + (visited - 1) % 26, step->name.data[10]);
    alike.name = other->name;
    alike.words = other->words;
    alike.undo = other->undo;
    assert_int_equal(other->place.stamp, alike.place.stamp);
    assert_int_equal(other->place.origin, alike.place.origin);
    assert_int_equal(other->base.stamp, alike.base.stamp);
    assert_int_equal(other->base.origin, alike.base.origin);
    assert_int_equal(other->previous, alike.previous);
    assert_int_equal(other->wall, alike.wall);
    assert_int_equal(other->hash, alike.hash);
    assert_int_equal(other->db, alike.db);
    assert_true(other->base_overwrote == alike.base_overwrote && other->existed == alike.existed &&
                other->exists == alike.exists && other->is_first == alike.is_first && other->owns == alike.owns);
}

static void release(const struct noted_step *step, void *context)
{
    (void)context;
    assert_true(step->owns);
    released++;
}

static void steps_come_out_as_they_went_in(void **state)
{
    struct noted_steps steps = {0}, taken;
    uint32_t keys = 0, missing = 0, owners = 0;
    struct random dice;

    (void)state;
    dice = test_random("noted_steps");
    for (uint32_t i = 0; i < STEPS; i++) {
        make(&made[i], &dice, i);
        noted_steps_add(&steps, &made[i]);
        keys += made[i].is_first;
        missing += !made[i].exists;
        owners += made[i].owns;
        assert_true(steps.first_stamp != 0 && steps.first_stamp <= i + 1);
    }
    assert_int_equal(keys, steps.keys);
    assert_int_equal(missing, steps.missing);
    taken = noted_steps_take(&steps);
    assert_true(steps.first == NULL && steps.keys == 0 && steps.bytes == 0 && steps.first_stamp == 0);
    while (taken.first != NULL) {
        const uint64_t stamp = taken.first_stamp;

        noted_steps_each_of_first(&taken, compare, NULL);
        assert_int_equal(stamp, visited); /* the greatest of those in the chunk */
        noted_steps_drop_first(&taken, release, NULL);
    }
    assert_int_equal(STEPS, visited);
    assert_int_equal(owners, released);
    assert_true(taken.keys == 0 && taken.missing == 0 && taken.bytes == 0 && taken.last == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_come_out_as_they_went_in)};

    return cmocka_run_group_tests_name("noted_steps", tests, NULL, NULL);
}
