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
    told(&pair, MERGE_OFFER_WAIT, 5000 + MERGE_WAITS_MS);
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
    told(&pair, MERGE_OFFER_WAIT, 5000);
    merge_vector_set(&pair.state.vector, ORIGIN + OTHER, 21);
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_MS), MERGE_WAITED_NOT);
    told(&pair, MERGE_OFFER_WAIT, 5000 + MERGE_WAITS_MS);
    assert_int_equal(look(&pair, 4999 + 2 * MERGE_WAITS_MS), MERGE_WAITED_NOT);
    assert_int_equal(look(&pair, 5000 + 2 * MERGE_WAITS_MS), MERGE_WAITED_IN_VAIN);
    pair_fini(&pair);
}

static void who_was_away_waits_anew(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    told(&pair, MERGE_OFFER_WAIT, 5000);
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_MOST_MS), MERGE_WAITED_NOT);
    told(&pair, MERGE_OFFER_WAIT, 5000 + MERGE_WAITS_MOST_MS);
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_MOST_MS + MERGE_WAITS_MS), MERGE_WAITED_IN_VAIN);
    pair_fini(&pair);
}

static void each_waits_for_itself(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    told(&pair, MERGE_OFFER_WAIT, 5000);
    pair.hello.name = THIRD;
    told(&pair, MERGE_OFFER_WAIT, 9000);
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_MS), MERGE_WAITED_NOT);
    told(&pair, MERGE_OFFER_STREAM, 5000 + MERGE_WAITS_MS);
    pair.hello.name = OTHER;
    assert_int_equal(look(&pair, 5000 + MERGE_WAITS_MS), MERGE_WAITED_IN_VAIN);
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_is_in_vain_when_nothing_comes),
        cmocka_unit_test(what_comes_begins_the_wait_anew),
        cmocka_unit_test(who_was_away_waits_anew),
        cmocka_unit_test(each_waits_for_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
