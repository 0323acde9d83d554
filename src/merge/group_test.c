#include "merge/group.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Three members with the names 1, 2, 3 and the origins 11, 12, 13; the group is that of member 1. */
enum { MEMBERS = 3 };

static struct merge_word *word_of(uint64_t name, uint64_t stamp, int64_t wall, uint64_t sequence)
{
    struct merge_word *word = mem_alloc_zero(sizeof(*word));

    word->references = 1;
    word->name = name;
    word->origin = name + 10;
    word->sequence = sequence;
    word->wall = wall;
    for (uint64_t i = 1; i <= MEMBERS; i++) {
        merge_vector_set(&word->vector, i + 10, stamp);
        merge_members_learn(&word->members, (struct merge_member){i, i + 10, 0});
    }
    return word;
}

static void found(struct merge_group *group)
{
    *group = (struct merge_group){.self = 1};
    for (uint64_t i = 1; i <= MEMBERS; i++)
        merge_members_learn(&group->members, (struct merge_member){i, i + 10, 0});
}

static void hear(struct merge_group *group, struct merge_word *word)
{
    merge_group_hear(group, word);
    merge_word_release(word);
}

/* The frontiers, if this member itself would say a word with this stamp and wall time. */
static bool frontiers(const struct merge_group *group, uint64_t stamp, int64_t wall, uint64_t *frontier,
                      int64_t *frontier_wall)
{
    struct merge_word *own = word_of(1, stamp, wall, 1);
    bool informed;

    merge_vector_raise_all(&own->closed, &group->closed);
    informed = merge_group_frontiers(group, own, frontier, frontier_wall);
    merge_word_release(own);
    return informed;
}

static void a_later_start_takes_the_place_of_an_earlier_one(void **state)
{
    struct merge_members members = {0};

    (void)state;
    assert_true(merge_members_learn(&members, (struct merge_member){2, 20, 1}));
    assert_true(merge_members_learn(&members, (struct merge_member){1, 10, 1}));
    assert_false(merge_members_learn(&members, (struct merge_member){2, 19, 0}));
    assert_int_equal(merge_members_find(&members, 2)->origin, 20);
    assert_true(merge_members_learn(&members, (struct merge_member){2, 21, 2}));
    assert_int_equal(merge_members_find(&members, 2)->origin, 21);
    assert_int_equal(members.items[0].name, 1);
    merge_members_remove(&members, 1);
    assert_null(merge_members_find(&members, 1));
    assert_int_equal(members.count, 1);
    merge_members_fini(&members);
}

/* Who has said nothing in this start has nothing, and who is given up still has what it said. */
static void what_all_have_is_held(void **state)
{
    struct merge_group group;
    struct merge_vector mine = {0}, held = {0};

    (void)state;
    found(&group);
    merge_vector_set(&mine, 11, 100);
    merge_vector_set(&mine, 14, 7); /* an origin that the others do not know */
    hear(&group, word_of(2, 60, 1, 1));
    merge_group_held(&group, &mine, &held);
    assert_int_equal(merge_vector_get(&held, 11), 0);
    merge_vector_fini(&held);
    hear(&group, word_of(3, 300, 1, 1));
    merge_group_held(&group, &mine, &held);
    assert_int_equal(merge_vector_get(&held, 11), 60);
    assert_int_equal(merge_vector_get(&held, 14), 0);
    merge_vector_fini(&held);
    merge_vector_set(&group.given_up, 2, 1);
    merge_group_held(&group, &mine, &held);
    assert_int_equal(merge_vector_get(&held, 11), 60);
    merge_vector_fini(&held);
    merge_members_learn(&group.members, (struct merge_member){2, 22, 1});
    merge_group_held(&group, &mine, &held);
    assert_int_equal(merge_vector_get(&held, 11), 0);
    merge_vector_fini(&held);
    merge_vector_fini(&mine);
    merge_group_fini(&group);
}

static void the_frontiers_are_the_least_of_all(void **state)
{
    struct merge_group group;
    uint64_t frontier = 0;
    int64_t wall = 0;

    (void)state;
    found(&group);
    hear(&group, word_of(2, 20, 5, 1));
    assert_false(frontiers(&group, 40, 9, &frontier, &wall)); /* nothing is known of member 3 */
    assert_int_equal(frontier, 0);
    hear(&group, word_of(3, 30, 4, 1));
    assert_true(frontiers(&group, 40, 9, &frontier, &wall));
    assert_int_equal(frontier, 20);
    assert_int_equal(wall, 4);
    hear(&group, word_of(2, 10, 1, 1)); /* no news */
    hear(&group, word_of(2, 35, 6, 2));
    assert_true(frontiers(&group, 40, 9, &frontier, &wall));
    assert_int_equal(frontier, 30);
    merge_group_fini(&group);
}

static void a_word_counts_when_its_deeds_are_here(void **state)
{
    struct merge_group group;
    uint64_t frontier = 0;
    int64_t wall = 0;

    (void)state;
    found(&group);
    hear(&group, word_of(2, 50, 5, 1));
    hear(&group, word_of(3, 30, 5, 1));
    assert_false(frontiers(&group, 40, 9, &frontier, &wall)); /* member 2 has spoken of 50 of its own */
    assert_true(frontiers(&group, 50, 9, &frontier, &wall));
    assert_int_equal(frontier, 30);
    merge_group_fini(&group);
}

static void one_that_was_given_up_does_not_hold_them_until_it_is_heard(void **state)
{
    struct merge_group group;
    uint64_t frontier = 0;
    int64_t wall = 0;

    (void)state;
    found(&group);
    hear(&group, word_of(2, 20, 5, 1));
    hear(&group, word_of(3, 10, 1, 1));
    merge_vector_set(&group.given_up, 3, 1);
    assert_true(frontiers(&group, 40, 9, &frontier, &wall));
    assert_int_equal(frontier, 20);
    assert_int_equal(wall, 5);
    hear(&group, word_of(3, 15, 1, 2));
    assert_false(merge_vector_has(&group.given_up, 3));
    merge_group_fini(&group);
}

static void a_closed_origin_holds_them_until_all_know(void **state)
{
    struct merge_group group;
    uint64_t frontier = 0;
    int64_t wall = 0;
    struct merge_word *word;

    (void)state;
    found(&group);
    merge_vector_set(&group.closed, 13, 1); /* a former start of member 3 */
    merge_members_learn(&group.members, (struct merge_member){3, 23, 1});
    hear(&group, word_of(2, 20, 5, 1)); /* does not say that it knows */
    word = word_of(3, 20, 5, 1);
    word->origin = 23;
    word->incarnation = 1;
    merge_vector_set(&word->vector, 23, 20);
    merge_vector_set(&word->closed, 13, 1);
    hear(&group, word);
    merge_vector_set(&group.given_up, 3, 1);
    assert_true(frontiers(&group, 20, 9, &frontier, &wall));
    assert_int_equal(frontier, 0);
    assert_int_equal(wall, 0);
    word = word_of(2, 20, 5, 2);
    merge_vector_set(&word->closed, 13, 1);
    hear(&group, word);
    assert_true(frontiers(&group, 20, 9, &frontier, &wall));
    assert_int_equal(frontier, 20);
    assert_int_equal(wall, 5);
    merge_group_fini(&group);
}

static void a_member_goes_only_if_the_others_know_all(void **state)
{
    struct merge_group group;
    struct merge_vector removed = {0};
    struct merge_word *word;

    (void)state;
    found(&group);
    assert_false(merge_group_may_forget(&group, 3)); /* member 2 has said nothing */
    word = word_of(2, 20, 5, 1);
    merge_members_remove(&word->members, 3);
    hear(&group, word);
    assert_false(merge_group_may_forget(&group, 3));
    assert_int_equal(merge_group_ignorant(&group, 3), 1);
    hear(&group, word_of(2, 20, 5, 2));
    assert_true(merge_group_may_forget(&group, 3));
    assert_int_equal(merge_group_ignorant(&group, 3), 0);
    assert_false(merge_group_may_forget(&group, 1));
    assert_false(merge_group_may_forget(&group, 9));

    merge_vector_set(&removed, 3, 1);
    merge_group_learn(&group, &(struct merge_members){0}, &(struct merge_vector){0}, &removed);
    assert_null(merge_members_find(&group.members, 3));
    assert_true(merge_vector_has(&group.closed, 13));
    hear(&group, word_of(2, 20, 5, 3)); /* who has not heard of it yet does not bring it back */
    assert_null(merge_members_find(&group.members, 3));
    merge_vector_fini(&removed);
    merge_group_fini(&group);
}

static void a_repair_waits_for_what_others_have_settled(void **state)
{
    struct merge_group group;
    struct merge_vector vector = {0};
    struct merge_word *word;

    (void)state;
    found(&group);
    for (uint64_t i = 2; i <= 3; i++) {
        word = word_of(i, 20, 5, 1);
        word->frontier = 15;
        hear(&group, word);
    }
    for (uint64_t i = 1; i <= MEMBERS; i++)
        merge_vector_set(&vector, i + 10, 20);
    assert_true(merge_group_covers_frontiers(&group, &vector));
    merge_vector_set(&vector, 11, 10);
    assert_false(merge_group_covers_frontiers(&group, &vector));
    merge_vector_fini(&vector);
    merge_group_fini(&group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_later_start_takes_the_place_of_an_earlier_one),
        cmocka_unit_test(what_all_have_is_held),
        cmocka_unit_test(the_frontiers_are_the_least_of_all),
        cmocka_unit_test(a_word_counts_when_its_deeds_are_here),
        cmocka_unit_test(one_that_was_given_up_does_not_hold_them_until_it_is_heard),
        cmocka_unit_test(a_closed_origin_holds_them_until_all_know),
        cmocka_unit_test(a_member_goes_only_if_the_others_know_all),
        cmocka_unit_test(a_repair_waits_for_what_others_have_settled),
    };

    mem_thread_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
