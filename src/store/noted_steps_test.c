/* Random steps of several stripes in several logs, beside a list of them: what is taken is what was not dropped, in
 * order, and what a step owns is released or given away once. */
#include "store/noted_steps.h"

#include "base/compiler.h"
#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 20000, STRIPES = 5, THREADS = 3, MOST_BYTES = 40000, NAME_BYTES = 11 };

struct made {
    struct noted_step step;
    size_t words_size;
    uint32_t stripe;
    bool is_gone, is_disowned;
};
static struct made made[STEPS];
static uint32_t made_count, released, owners;
static uint64_t settled; /* steps up to this stamp may be gone */
static char bytes[MOST_BYTES];

static char letter_of(uint64_t number)
{
    return (char)('a' + number % 26);
}

static void make(struct random *dice, uint32_t number, uint64_t stamp)
{
    struct made *its = &made[number];
    const size_t words = random_below(dice, random_below(dice, 300) == 0 ? MOST_BYTES - 20 : 100) + 20;

    memset(bytes, letter_of(number), sizeof(bytes));
    its->stripe = (uint32_t)random_below(dice, STRIPES);
    its->words_size = words;
    its->step = (struct noted_step){.place = {stamp, random_below(dice, 3)},
                                    .base = {number, number % 7},
                                    .previous = number,
                                    .wall = -(int64_t)number,
                                    .hash = number * UINT64_C(77),
                                    .db = number,
                                    .base_overwrote = random_below(dice, 2) == 0,
                                    .existed = random_below(dice, 2) == 0,
                                    .is_first = random_below(dice, 2) == 0,
                                    .owns = random_below(dice, 50) == 0,
                                    .words = slice_make(bytes, words),
                                    .undo = slice_make(bytes, random_below(dice, 9) * 8)};
    /* A name is part of the words, or stands elsewhere. */
    its->step.name = random_below(dice, 2) == 0 ? slice_make(bytes + 7, NAME_BYTES) : SLICE("a name of its own");
    owners += its->step.owns;
    made_count++;
}

static void disown(const struct noted_step *step)
{
    struct made *its = &made[step->db];

    assert_true(its->step.owns && step->owns && !its->is_disowned);
    its->is_disowned = true;
    released++;
}

static void release(const struct noted_step *step, void *context)
{
    (void)context;
    disown(step);
    assert_true(made[step->db].step.place.stamp <= settled);
}

struct expected {
    uint32_t stripe;
    struct merge_place last;
    uint32_t count;
};

static void compare(const struct noted_step *step, void *context)
{
    struct expected *expected = context;
    struct made *its = &made[step->db];
    const struct noted_step *other = &its->step;

    assert_true(!its->is_gone && its->stripe == expected->stripe);
    assert_false(merge_place_before(step->place, expected->last));
    expected->last = step->place;
    expected->count += step->place.stamp > settled;
    its->is_gone = true;
    assert_true(other->place.stamp == step->place.stamp && other->place.origin == step->place.origin);
    assert_true(other->base.stamp == step->base.stamp && other->base.origin == step->base.origin);
    assert_true(other->previous == step->previous && other->wall == step->wall && other->hash == step->hash);
    assert_true(other->base_overwrote == step->base_overwrote && other->existed == step->existed &&
                other->is_first == step->is_first && other->owns == step->owns);
    assert_int_equal(its->words_size, step->words.size);
    assert_int_equal(other->undo.size, step->undo.size);
    assert_int_equal(letter_of(step->db), step->words.data[0]);
    assert_int_equal(letter_of(step->db), step->words.data[step->words.size - 1]);
    if (step->undo.size != 0)
        assert_int_equal(letter_of(step->db), step->undo.data[step->undo.size - 1]);
    if (step->name.size == NAME_BYTES)
        assert_int_equal(letter_of(step->db), step->name.data[NAME_BYTES - 1]);
    else
        assert_true(slice_equal(SLICE("a name of its own"), step->name));
    if (step->owns)
        disown(step);
}

static void take(struct noted_steps *steps, uint32_t stripe)
{
    struct expected expected = {.stripe = stripe};
    uint32_t count = 0;

    for (uint32_t i = 0; i < made_count; i++)
        count += !made[i].is_gone && made[i].stripe == stripe && made[i].step.place.stamp > settled;
    noted_steps_take(steps, stripe, compare, &expected);
    assert_int_equal(count, expected.count);
}

/* Of those, at least, that a drop has not passed. */
static uint64_t keys_left(void)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < made_count; i++)
        count += !made[i].is_gone && made[i].step.is_first && made[i].step.place.stamp > settled;
    return count;
}

static void steps_come_out_as_they_went_in(void **state)
{
    static struct noted_steps steps;
    const uint32_t self = spinlock_self_id();
    struct random dice;

    (void)state;
    dice = test_random("noted_steps");
    noted_steps_init(&steps, STRIPES);
    for (uint32_t i = 0; i < STEPS; i++) {
        make(&dice, i, i + 1 + random_below(&dice, 20)); /* those of peers do not ascend */
        spinlock_self = self + (uint32_t)random_below(&dice, THREADS);
        (void)noted_steps_add(&steps, made[i].stripe, &made[i].step, settled, release, NULL);
        if (random_below(&dice, 200) == 0)
            take(&steps, (uint32_t)random_below(&dice, STRIPES));
        if (random_below(&dice, 500) == 0) {
            settled = MAX(settled, i + 1 - random_below(&dice, MIN(i + 1, UINT32_C(500))));
            if (random_below(&dice, 2) == 0)
                (void)noted_steps_drop(&steps, settled, release, NULL);
        }
        if (random_below(&dice, 500) == 0)
            noted_steps_trim(&steps);
        if (random_below(&dice, 100) == 0)
            assert_true(keys_left() <= noted_steps_keys(&steps));
    }
    spinlock_self = self;
    for (uint32_t i = 0; i < STRIPES; i++)
        take(&steps, i);
    settled = UINT64_MAX;
    (void)noted_steps_drop(&steps, UINT64_MAX, release, NULL);
    assert_int_equal(owners, released);
    assert_int_equal(0, noted_steps_bytes(&steps));
    assert_int_equal(0, noted_steps_keys(&steps));
    assert_int_equal(0, noted_steps_taken_bytes(&steps));
    noted_steps_fini(&steps);
}

/* A chunk of which all steps were taken goes, also from between others; links to others stay good. */
static void what_is_taken_is_given_back(void **state)
{
    static struct noted_steps steps;
    struct noted_step step = {.words = slice_make(bytes, 1000), .name = slice_make(bytes, NAME_BYTES)};
    uint64_t most = 0;

    (void)state;
    noted_steps_init(&steps, 2);
    made_count = 0;
    settled = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        made[i] = (struct made){.stripe = i == 0 ? 1 : 0, .words_size = 1000};
        step.place = (struct merge_place){i + 1, 1};
        step.db = i;
        memset(bytes, letter_of(i), 1000);
        made[i].step = step;
        made_count++;
        (void)noted_steps_add(&steps, made[i].stripe, &step, 0, release, NULL);
        if (i % 100 == 99)
            take(&steps, 0);
        most = MAX(most, noted_steps_bytes(&steps));
    }
    assert_true(most <= 8 * (uint64_t)NOTED_CHUNK_BYTES);
    take(&steps, 1);
    assert_true(noted_steps_bytes(&steps) <= NOTED_CHUNK_BYTES);
    (void)noted_steps_drop(&steps, 1000, release, NULL);
    noted_steps_fini(&steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_come_out_as_they_went_in),
                                       cmocka_unit_test(what_is_taken_is_given_back)};

    return cmocka_run_group_tests_name("noted_steps", tests, NULL, NULL);
}
