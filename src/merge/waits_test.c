#include "merge/waits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ME = 1, OTHER = 2, THIRD = 3, ORIGIN = 1000 };

struct pair {
    struct merge_state state; /* of this node: it lacks what the other one has of its origin */
    struct merge_hello hello;
    struct merge_vector deeds;
    struct merge_waits waits;
};

static void pair_init(struct pair *pair)
{
    *pair = (struct pair){.waits = {0}};
    merge_state_init(&pair->state, ME, ORIGIN + ME);
    merge_vector_set(&pair->deeds, ORIGIN + OTHER, 50);
    merge_vector_set(&pair->deeds, ORIGIN + ME, 0); /* not lacked */
    merge_vector_set(&pair->state.vector, ORIGIN + OTHER, 20);
    pair->hello = (struct merge_hello){.name = OTHER, .deeds = pair->deeds};
}

static void pair_fini(struct pair *pair)
{
    merge_waits_fini(&pair->waits);
    merge_vector_fini(&pair->deeds);
    merge_state_fini(&pair->state);
}

static enum merge_waited look(const struct pair *pair, uint64_t now_ms)
{
    return merge_waits_look(&pair->waits, &pair->state, &pair->hello, now_ms);
}

static void told(struct pair *pair, enum merge_offer offer, uint64_t now_ms)
{
    merge_waits_note(&pair->waits, &pair->state, &pair->hello, offer, now_ms);
}

/* It comes and is told to wait, many times a second, until before that time. */
static void wait_on(struct pair *pair, uint64_t from_ms, uint64_t to_ms)
{
    for (uint64_t now = from_ms; now < to_ms; now += 100)
        told(pair, MERGE_OFFER_WAIT, now);
}

static void waiting_is_in_vain_when_nothing_comes(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(look(&pair, 5000), MERGE_WAITED_NOT);
    for (uint64_t now = 5000; now < 5000 + MERGE_WAITS_MS; now += 100) {
        assert_int_equal(look(&pair, now), MERGE_WAITED_NOT);
        told(&pair, MERGE_OFFER_WAIT, now);
    }
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_MS), MERGE_WAITED_IN_VAIN);
    wait_on(&pair, 5000 + MERGE_WAITS_MS, 5000 + MERGE_WAITS_LONG_MS);
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_LONG_MS - 1), MERGE_WAITED_IN_VAIN);
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_LONG_MS), MERGE_WAITED_LONG_IN_VAIN);
    told(&pair, MERGE_OFFER_SNAPSHOT, 5000 + MERGE_WAITS_LONG_MS);
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_LONG_MS), MERGE_WAITED_NOT);
    pair_fini(&pair);
}

static void what_comes_begins_the_wait_anew(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    wait_on(&pair, 5000, 5000 + MERGE_WAITS_MS);
    merge_vector_set(&pair.state.vector, ORIGIN + OTHER, 21);
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_MS), MERGE_WAITED_NOT);
    wait_on(&pair, 5000 + MERGE_WAITS_MS, 5000 + 2 * MERGE_WAITS_MS);
    assert_int_equal(look(&pair, 4999 + 2 * MERGE_WAITS_MS), MERGE_WAITED_NOT);
    assert_int_equal(look(&pair, 5000 + 2 * MERGE_WAITS_MS), MERGE_WAITED_IN_VAIN);
    pair_fini(&pair);
}

/* A link brings one origin after another; while something comes none of them is in vain. What one of them does
 * meanwhile is not waited for. */
static void what_comes_of_one_origin_is_for_all(void **state)
{
    uint64_t now = 5000;
    struct pair pair;

    (void)state;
    pair_init(&pair);
    merge_vector_set(&pair.deeds, ORIGIN + THIRD, 9);
    pair.hello.deeds = pair.deeds;
    for (uint64_t stamp = 21; stamp <= 50; stamp++, now += 1000) {
        told(&pair, MERGE_OFFER_WAIT, now);
        merge_vector_set(&pair.state.vector, ORIGIN + OTHER, stamp);
        assert_int_equal(look(&pair, now + 999), MERGE_WAITED_NOT);
    }
    for (uint64_t end = now + MERGE_WAITS_MS; now <= end; now += 1000) {
        merge_vector_set(&pair.deeds, ORIGIN + OTHER, now);
        merge_vector_set(&pair.state.vector, ORIGIN + OTHER, now - 1);
        told(&pair, MERGE_OFFER_WAIT, now);
    }
    assert_int_equal(look(&pair, now), MERGE_WAITED_IN_VAIN);
    pair_fini(&pair);
}

static void all_that_was_lacked_came(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    wait_on(&pair, 5000, 5000 + MERGE_WAITS_MS);
    merge_vector_set(&pair.state.vector, ORIGIN + OTHER, 50);
    merge_vector_set(&pair.deeds, ORIGIN + OTHER, 60);
    wait_on(&pair, 5000 + MERGE_WAITS_MS, 5000 + 2 * MERGE_WAITS_MS);
    assert_int_equal(look(&pair, 4999 + 2 * MERGE_WAITS_MS), MERGE_WAITED_NOT);
    assert_int_equal(look(&pair, 5000 + 2 * MERGE_WAITS_MS), MERGE_WAITED_IN_VAIN);
    pair_fini(&pair);
}

/* What the other one has to give could not come, either. */
static void who_was_away_has_not_waited(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    told(&pair, MERGE_OFFER_WAIT, 5000);
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_MS), MERGE_WAITED_NOT);
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_LONG_MS), MERGE_WAITED_NOT);
    wait_on(&pair, 5000 + MERGE_WAITS_LONG_MS, 5000 + MERGE_WAITS_LONG_MS + MERGE_WAITS_MS - MERGE_WAITS_STEP_MS);
    assert_int_equal(look(&pair, 4999 + MERGE_WAITS_LONG_MS + MERGE_WAITS_MS - MERGE_WAITS_STEP_MS), MERGE_WAITED_NOT);
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_LONG_MS + MERGE_WAITS_MS - MERGE_WAITS_STEP_MS),
                     MERGE_WAITED_IN_VAIN);
    pair_fini(&pair);
}

static void who_was_long_away_waits_anew(void **state)
{
    struct pair pair;
    uint64_t now;

    (void)state;
    pair_init(&pair);
    wait_on(&pair, 5000, 5000 + MERGE_WAITS_MS);
    now = 5000 + MERGE_WAITS_MS + MERGE_WAITS_AWAY_MS;
    assert_int_equal(look(&pair, now), MERGE_WAITED_NOT);
    wait_on(&pair, now, now + MERGE_WAITS_MS);
    assert_int_equal(look(&pair, now + MERGE_WAITS_MS - 1), MERGE_WAITED_NOT);
    assert_int_equal(look(&pair, now + MERGE_WAITS_MS), MERGE_WAITED_IN_VAIN);
    pair_fini(&pair);
}

static void who_stays_away_is_forgotten(void **state)
{
    enum { NAMES = 1000 };
    struct pair pair;

    (void)state;
    pair_init(&pair);
    for (uint64_t i = 0; i < NAMES; i++) {
        pair.hello.name = THIRD + i;
        told(&pair, MERGE_OFFER_WAIT, 5000 + i * MERGE_WAITS_AWAY_MS / 10);
        assert_true(pair.waits.count <= 10);
    }
    pair_fini(&pair);
}

static void an_overtaken_clock_ends_no_wait(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    wait_on(&pair, 5000, 5000 + MERGE_WAITS_MS);
    told(&pair, MERGE_OFFER_WAIT, 5000 + MERGE_WAITS_MS);
    pair.hello.name = THIRD;
    told(&pair, MERGE_OFFER_WAIT, 4999 + MERGE_WAITS_MS);
    pair.hello.name = OTHER;
    assert_int_equal(look(&pair, 4999 + MERGE_WAITS_MS), MERGE_WAITED_IN_VAIN);
    told(&pair, MERGE_OFFER_WAIT, 4999 + MERGE_WAITS_MS);
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_MS), MERGE_WAITED_IN_VAIN);
    pair_fini(&pair);
}

static void each_waits_for_itself(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    wait_on(&pair, 5000, 9000);
    pair.hello.name = THIRD;
    wait_on(&pair, 9000, 5000 + MERGE_WAITS_MS);
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_MS), MERGE_WAITED_NOT);
    told(&pair, MERGE_OFFER_STREAM, 5000 + MERGE_WAITS_MS);
    pair.hello.name = OTHER;
    wait_on(&pair, 9000, 5000 + MERGE_WAITS_MS);
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_MS), MERGE_WAITED_IN_VAIN);
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_is_in_vain_when_nothing_comes),
        cmocka_unit_test(what_comes_begins_the_wait_anew),
        cmocka_unit_test(what_comes_of_one_origin_is_for_all),
        cmocka_unit_test(all_that_was_lacked_came),
        cmocka_unit_test(who_was_away_has_not_waited),
        cmocka_unit_test(who_was_long_away_waits_anew),
        cmocka_unit_test(who_stays_away_is_forgotten),
        cmocka_unit_test(an_overtaken_clock_ends_no_wait),
        cmocka_unit_test(each_waits_for_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
