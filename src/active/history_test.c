/* Where a reader of the journal begins for a peer: the marks against a list of everything. */
#include "active/history.h"

#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ORIGINS = 4, STEPS = 3000, RECORDS_MOST = 100000 };

static struct {
    uint64_t position, origin, stamp;
} records[RECORDS_MOST];

static const struct merge_vector nobody;

static void marks_lead_to_all_that_is_lacking(void **state)
{
    struct random random = test_random(__func__);
    struct history_marks marks = {0};
    struct merge_vector deeds = {0};
    uint64_t position = 1000, offset = 5, limit = 1 << 16;
    unsigned count = 0;

    (void)state;
    history_marks_add(&marks, position, offset, &deeds, limit);
    for (unsigned step = 0; step < STEPS; step++) {
        struct merge_vector behind = {0};
        const struct history_mark *mark;

        for (uint64_t i = random_below(&random, 20); i != 0; i--) {
            const uint64_t origin = 1 + random_below(&random, ORIGINS);

            records[count].position = position;
            records[count].origin = origin;
            records[count].stamp = merge_vector_get(&deeds, origin) + 1 + random_below(&random, 5);
            merge_vector_set(&deeds, origin, records[count].stamp);
            position += 1 + random_below(&random, 400);
            offset += random_below(&random, 500);
            count++;
        }
        history_marks_add(&marks, position, offset, &deeds, limit);
        history_marks_trim(&marks, position, offset, limit, &nobody, 0);
        assert_in_range(marks.count, 1, HISTORY_MARKS_MOST);
        if (marks.count > 1) {
            assert_true(position - marks.items[0].position <= limit);
            assert_true(offset - marks.items[0].bytes <= limit);
        }
        for (uint64_t origin = 1; origin <= ORIGINS; origin++) {
            if (random_below(&random, 3) != 0)
                merge_vector_set(&behind, origin,
                                 merge_vector_get(&deeds, origin) -
                                     MIN(merge_vector_get(&deeds, origin), random_below(&random, 2000)));
        }
        mark = history_marks_find(&marks, &behind);
        if (mark == NULL)
            assert_false(merge_vector_covers(&behind, &marks.items[0].deeds));
        for (unsigned i = 0; mark != NULL && i < count; i++) {
            if (merge_vector_has(&behind, records[i].origin) &&
                records[i].stamp > merge_vector_get(&behind, records[i].origin))
                assert_true(records[i].position >= mark->position);
        }
        merge_vector_fini(&behind);
    }
    merge_vector_fini(&deeds);
    history_marks_fini(&marks);
}

/* The last one that will do, not any. */
static void the_last_mark_is_found(void **state)
{
    struct history_marks marks = {0};
    struct merge_vector deeds = {0}, behind = {0}, skipped = {0};

    (void)state;
    for (uint64_t i = 0; i < 10; i++) {
        merge_vector_set(&deeds, 7, 100 * i);
        history_marks_add(&marks, 1000 * i, 0, &deeds, 1 << 18);
    }
    assert_int_equal(marks.count, 10);
    assert_int_equal(history_marks_find(&marks, &behind)->position, 9000);
    merge_vector_set(&behind, 7, 399);
    assert_int_equal(history_marks_find(&marks, &behind)->position, 3000);
    merge_vector_set(&behind, 7, 400);
    assert_int_equal(history_marks_find(&marks, &behind)->position, 4000);
    history_marks_trim(&marks, 9000, 0, 4500, &nobody, 0);
    assert_int_equal(marks.items[0].position, 5000);
    assert_null(history_marks_find(&marks, &behind));
    merge_vector_set(&behind, 7, 600);
    merge_vector_set(&behind, 8, 5);
    assert_int_equal(history_marks_find(&marks, &behind)->position, 6000);
    merge_vector_set(&skipped, 8, 6);
    history_marks_skip(&marks, &skipped);
    assert_null(history_marks_find(&marks, &behind));
    merge_vector_set(&behind, 8, 6);
    assert_int_equal(history_marks_find(&marks, &behind)->position, 6000);
    merge_vector_fini(&skipped);
    history_marks_trim(&marks, 9000, 0, 0, &nobody, 0);
    assert_int_equal(marks.count, 1);
    assert_int_equal(marks.items[0].position, 9000);
    merge_vector_fini(&deeds);
    merge_vector_fini(&behind);
    history_marks_fini(&marks);
}

/* What all members have is kept up to a bound of its own; what one of them lacks is not touched by that. */
static void what_all_have_goes_earlier(void **state)
{
    struct history_marks marks = {0};
    struct merge_vector deeds = {0}, held = {0};

    (void)state;
    for (uint64_t i = 0; i < 10; i++) {
        merge_vector_set(&deeds, 7, 100 * i);
        if (i >= 5)
            merge_vector_set(&deeds, 8, 1);
        history_marks_add(&marks, 1000 * i, 0, &deeds, 1 << 18);
    }
    merge_vector_set(&held, 7, 399);
    history_marks_trim(&marks, 9000, 0, 1 << 18, &held, 6500);
    assert_int_equal(marks.items[0].position, 3000); /* the first one with less than 6,500 behind it */
    history_marks_trim(&marks, 9000, 0, 1 << 18, &held, 0);
    assert_int_equal(marks.items[0].position, 3000); /* between 300 and 400 somebody lacks something */
    merge_vector_set(&held, 7, 900);
    history_marks_trim(&marks, 9000, 0, 1 << 18, &held, 0);
    assert_int_equal(marks.items[0].position, 4000); /* and all of the other origin */
    merge_vector_set(&held, 8, 1);
    history_marks_trim(&marks, 9000, 0, 1 << 18, &held, 2000);
    assert_int_equal(marks.items[0].position, 7000);
    history_marks_trim(&marks, 9000, 0, 1 << 18, &held, 0);
    assert_int_equal(marks.count, 1);
    merge_vector_fini(&deeds);
    merge_vector_fini(&held);
    history_marks_fini(&marks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_lead_to_all_that_is_lacking),
        cmocka_unit_test(the_last_mark_is_found),
        cmocka_unit_test(what_all_have_goes_earlier),
    };

    return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
