#include "store/origins.h"

#include "base/thread.h"
#include "store/horizon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { OWN = 1000, FIRST = 2000 };

static uint64_t stamp_of(uint64_t nth)
{
    return stamp_at(INT64_C(1800000000000)) + nth;
}

static uint64_t origin_of(const struct origins *origins, uint64_t nth, unsigned number)
{
    return origins_of_version(origins, version_make(stamp_of(nth), false, number));
}

/* Gives away all numbers from 1 on, to FIRST, FIRST + 1, ... */
static void fill(struct origins *origins)
{
    origins_init(origins);
    origins_set_own(origins, OWN);
    for (unsigned i = 1; i < ORIGINS_UNKNOWN; i++)
        assert_int_equal(origins_number(origins, FIRST + i), i);
}

static void an_origin_keeps_its_number(void **state)
{
    struct origins origins;

    (void)state;
    fill(&origins);
    assert_int_equal(origins_number(&origins, OWN), VERSION_OWN_ORIGIN);
    for (unsigned i = 1; i < ORIGINS_UNKNOWN; i++) {
        assert_int_equal(origins_number(&origins, FIRST + i), i);
        assert_int_equal(origins_id(&origins, i), FIRST + i);
        assert_int_equal(origin_of(&origins, 1, i), FIRST + i);
    }
}

static void when_all_are_taken_the_last_one_says_nothing(void **state)
{
    struct origins origins;
    struct origins_facts facts;

    (void)state;
    fill(&origins);
    assert_int_equal(origins_number(&origins, 77), ORIGINS_UNKNOWN);
    assert_int_equal(origins_number(&origins, 78), ORIGINS_UNKNOWN);
    assert_int_equal(origins_id(&origins, ORIGINS_UNKNOWN), 0);
    assert_int_equal(origin_of(&origins, 1, ORIGINS_UNKNOWN), 0);
    origins_facts(&origins, &facts);
    assert_int_equal(facts.used, ORIGINS_UNKNOWN);
    assert_int_equal(facts.free, 0);
    assert_int_equal(facts.unnumbered, 2);
}

static void a_number_goes_on_when_its_origin_has_ended(void **state)
{
    struct origins origins;

    (void)state;
    fill(&origins);
    origins_end(&origins, FIRST + 7, stamp_of(50));
    origins_end(&origins, FIRST + 9, stamp_of(40));
    assert_int_equal(origins_number(&origins, FIRST + 7), 7); /* its own until another one needs it */
    assert_int_equal(origin_of(&origins, 50, 7), FIRST + 7);

    /* The one whose stamps are older first. */
    assert_int_equal(origins_number(&origins, 77), 9);
    assert_int_equal(origins_number(&origins, 78), 7);
    assert_int_equal(origins_number(&origins, 79), ORIGINS_UNKNOWN);
    assert_int_equal(origins_id(&origins, 7), 78);

    /* What was written before says nothing any more; one that is older than the new owner's does neither. */
    assert_int_equal(origin_of(&origins, 50, 7), 0);
    assert_int_equal(origin_of(&origins, 51, 7), 78);
    assert_int_equal(origin_of(&origins, 40, 9), 0);
    assert_int_equal(origin_of(&origins, 41, 9), 77);
    assert_int_equal(origins_number(&origins, FIRST + 7), ORIGINS_UNKNOWN);
}

static void what_was_unknown_stays_so(void **state)
{
    struct origins origins;

    (void)state;
    fill(&origins);
    origins_end(&origins, FIRST + 7, stamp_of(50));
    assert_int_equal(origins_number(&origins, 77), 7);
    origins_end(&origins, 77, stamp_of(10)); /* all of its stamps are older than its time here */
    assert_int_equal(origins_number(&origins, 78), 7);
    assert_int_equal(origin_of(&origins, 50, 7), 0);
    assert_int_equal(origin_of(&origins, 51, 7), 78);
}

static void an_origin_without_a_number_can_end(void **state)
{
    struct origins origins;

    (void)state;
    fill(&origins);
    origins_end(&origins, 77, stamp_of(50));
    assert_int_equal(origins_number(&origins, 78), ORIGINS_UNKNOWN);
}

/* Numbers change hands while others read: a version is its writer's or nobody's, never another one's. */
struct race {
    struct origins origins;
    _Atomic uint64_t turn; /* origin TURNS + turn has the stamps 10 turn to 10 turn + 9 */
    _Atomic bool over;
};

enum { RACE_NUMBER = 1, RACE_TURNS = 20000, TURNS = 100000, OTHERS = 200000 };

static void read_versions(void *argument)
{
    struct race *race = argument;

    while (!atomic_load(&race->over)) {
        const uint64_t turn = atomic_load(&race->turn);
        const uint64_t id = origin_of(&race->origins, 10 * turn + 5, RACE_NUMBER);

        assert(id == 0 || id == TURNS + turn);
    }
}

static void versions_are_never_of_another_origin(void **state)
{
    static struct race race;
    struct thread threads[2] = {0};

    (void)state;
    fill(&race.origins);
    origins_end(&race.origins, FIRST + RACE_NUMBER, stamp_of(9));
    assert_int_equal(origins_number(&race.origins, TURNS + 1), RACE_NUMBER);
    atomic_store(&race.turn, 1);
    for (unsigned i = 0; i < 2; i++)
        thread_start(&threads[i], "reader", read_versions, &race);
    for (uint64_t turn = 2; turn < RACE_TURNS; turn++) {
        origins_end(&race.origins, TURNS + turn - 1, stamp_of(10 * turn - 1));
        assert_int_equal(origins_number(&race.origins, OTHERS + turn), RACE_NUMBER);
        origins_end(&race.origins, OTHERS + turn, stamp_of(10 * turn - 1));
        assert_int_equal(origins_number(&race.origins, TURNS + turn), RACE_NUMBER);
        atomic_store(&race.turn, turn);
    }
    atomic_store(&race.over, true);
    for (unsigned i = 0; i < 2; i++)
        thread_join(&threads[i]);
}

static void the_horizon_only_rises(void **state)
{
    struct horizon horizon;
    struct merge_horizon seen;

    (void)state;
    horizon_init(&horizon, 2);
    horizon_raise(&horizon, 10, 100);
    horizon_raise(&horizon, 9, 101);
    horizon_raise(&horizon, 11, 99);
    horizon_raise_floor(&horizon, 7);
    horizon_raise_floor(&horizon, 6);
    seen = horizon_of(&horizon, 1);
    assert_int_equal(seen.frontier, 11);
    assert_int_equal(seen.wall, 101);
    assert_int_equal(seen.floor, 7);
    assert_int_equal(seen.flush.stamp, 0);
    horizon_fini(&horizon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_origin_keeps_its_number),
        cmocka_unit_test(when_all_are_taken_the_last_one_says_nothing),
        cmocka_unit_test(a_number_goes_on_when_its_origin_has_ended),
        cmocka_unit_test(what_was_unknown_stays_so),
        cmocka_unit_test(an_origin_without_a_number_can_end),
        cmocka_unit_test(versions_are_never_of_another_origin),
        cmocka_unit_test(the_horizon_only_rises),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
