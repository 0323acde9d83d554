#include "merge/record.h"

#include "base/mem.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Values of these tests are texts with a deadline. Operations: "=text" overwrites, "-" deletes, "+text" appends,
 * "?text" is refused where there is no key; a digit behind '@' is a deadline. */
struct merge_value {
    char text[32];
    int64_t deadline; /* 0: none */
};

static void text_destroy(const struct merge_model *its_model, struct merge_value *value)
{
    (void)its_model;
    mem_free(value);
}

static struct merge_value *text_copy(const struct merge_model *its_model, struct merge_value *value)
{
    (void)its_model;
    return value != NULL ? mem_copy(value, sizeof(*value)) : NULL;
}

static struct merge_value *text_expire(const struct merge_model *its_model, struct merge_value *value, int64_t wall)
{
    (void)its_model;
    if (value == NULL || value->deadline == 0 || value->deadline > wall)
        return value;
    mem_free(value);
    return NULL;
}

/* The undo of these tests is the old text. */
struct merge_undo {
    unsigned references;
    struct merge_value *before;
};

static struct merge_undo *undo_acquire(const struct merge_model *its_model, struct merge_undo *undo)
{
    (void)its_model;
    if (undo != NULL)
        undo->references++;
    return undo;
}

static void undo_release(const struct merge_model *its_model, struct merge_undo *undo)
{
    (void)its_model;
    if (undo == NULL || --undo->references != 0)
        return;
    mem_free(undo->before);
    mem_free(undo);
}

static struct merge_value *text_undo(const struct merge_model *its_model, struct merge_value *value,
                                     const struct merge_undo *undo)
{
    mem_free(value);
    return text_copy(its_model, undo->before);
}

static struct merge_value *text_apply(const struct merge_model *its_model, struct merge_value *value,
                                      const struct merge_op *op, struct merge_undo **undo)
{
    struct slice words = op->words;

    if (undo != NULL) {
        *undo = mem_alloc(sizeof(**undo));
        **undo = (struct merge_undo){1, text_copy(its_model, value)};
    }
    value = text_expire(its_model, value, op->entry->wall);
    if (words.data[0] == '-') {
        mem_free(value);
        return NULL;
    }
    if (words.data[0] == '?' && value == NULL)
        return NULL;
    if (value == NULL)
        value = mem_alloc_zero(sizeof(*value));
    if (words.data[0] == '@')
        value->deadline = words.data[1] - '0';
    else
        strncat(value->text, words.data + 1, words.size - 1);
    return value;
}

/* Nothing runs in place: the simulation has that. */
static struct merge_touch text_touch(const struct merge_model *its_model, const struct merge_op *op)
{
    (void)its_model;
    (void)op;
    return (struct merge_touch){.kind = MERGE_TOUCHES_ALL};
}

static const struct merge_model model = {.apply = text_apply,
                                         .touch = text_touch,
                                         .undo = text_undo,
                                         .undo_acquire = undo_acquire,
                                         .undo_release = undo_release,
                                         .expire = text_expire,
                                         .copy = text_copy,
                                         .destroy = text_destroy};

struct world {
    struct merge_horizon horizon;
    struct merge_record record;
    bool exists;
};

static enum merge_outcome place_at(struct world *world, uint64_t origin, uint64_t stamp, int64_t wall,
                                   const char *words)
{
    struct merge_item item = {.key = slice_from_text("key"),
                              .words = slice_from_text(words),
                              .overwrites = words[0] == '=' || words[0] == '-'};
    struct merge_entry *entry = merge_entry_create(origin, stamp, 0, wall, false, &item, 1);
    enum merge_outcome outcome;

    if (!world->exists)
        merge_record_init(&world->record, &world->horizon);
    outcome = merge_record_place(&world->record, &entry->ops[0], world->exists, &world->horizon, &model);
    world->exists |= outcome == MERGE_APPENDED || outcome == MERGE_PLACED || outcome == MERGE_LATE;
    merge_record_validate(&world->record);
    merge_entry_release(entry);
    return outcome;
}

static enum merge_outcome place(struct world *world, uint64_t stamp, const char *words)
{
    return place_at(world, 1, stamp, 1, words);
}

static enum merge_outcome evict(struct world *world, uint64_t stamp, uint64_t seen)
{
    struct merge_item item = {.key = slice_from_text("key"),
                              .words = slice_from_text("-"),
                              .overwrites = true,
                              .evicts = true,
                              .seen = seen};
    struct merge_entry *entry = merge_entry_create(2, stamp, 0, 1, false, &item, 1);
    enum merge_outcome outcome = merge_record_place(&world->record, &entry->ops[0], world->exists, &world->horizon,
                                                    &model);

    merge_entry_release(entry);
    return outcome;
}

static void assert_text(const struct world *world, const char *text)
{
    if (text == NULL) {
        assert_null(world->record.value);
    } else {
        assert_non_null(world->record.value);
        assert_string_equal(world->record.value->text, text);
    }
}

static void fini(struct world *world)
{
    merge_record_fini(&world->record, &model);
}

static void operations_run_in_their_order(void **state)
{
    struct world world = {0};

    (void)state;
    assert_int_equal(place(&world, 10, "+a"), MERGE_APPENDED);
    assert_int_equal(place(&world, 30, "+c"), MERGE_APPENDED);
    assert_int_equal(place(&world, 20, "+b"), MERGE_PLACED);
    assert_text(&world, "abc");
    assert_int_equal(place_at(&world, 2, 20, 1, "+B"), MERGE_PLACED); /* equal stamps: by origin */
    assert_text(&world, "abBc");
    fini(&world);
}

static void what_overwrites_becomes_the_base(void **state)
{
    struct world world = {0};

    (void)state;
    place(&world, 10, "+a");
    place(&world, 30, "+c");
    assert_int_equal(place(&world, 20, "=x"), MERGE_PLACED);
    assert_text(&world, "xc");
    assert_int_equal(world.record.count, 1);
    assert_int_equal(place(&world, 15, "+b"), MERGE_OVERWRITTEN);
    assert_text(&world, "xc");
    assert_int_equal(place(&world, 40, "-"), MERGE_APPENDED);
    assert_text(&world, NULL);
    assert_int_equal(world.record.count, 0);
    fini(&world);
}

static void what_was_refused_may_work_later(void **state)
{
    struct world world = {0};

    (void)state;
    place(&world, 20, "?b");
    assert_text(&world, NULL);
    place(&world, 10, "+a");
    assert_text(&world, "ab");
    fini(&world);
}

static void what_has_expired_is_not_met(void **state)
{
    struct world world = {0};

    (void)state;
    place(&world, 10, "+a");
    place(&world, 11, "@5");
    assert_int_equal(place_at(&world, 1, 30, 9, "+c"), MERGE_APPENDED);
    assert_text(&world, "c");
    assert_int_equal(place_at(&world, 1, 20, 4, "+b"), MERGE_PLACED);
    assert_text(&world, "c");
    fini(&world);
}

static void settled_operations_go_into_the_base(void **state)
{
    struct world world = {0};

    (void)state;
    for (uint64_t i = 1; i <= 5; i++)
        place(&world, i * 10, "+a");
    assert_true(merge_record_window_bytes(&world.record) != 0);
    world.horizon.frontier = 30;
    assert_false(merge_record_settle(&world.record, &world.horizon, false, &model));
    assert_int_equal(world.record.count, 2);
    assert_int_equal(world.record.base_place.stamp, 30);
    world.horizon.frontier = 50;
    assert_false(merge_record_settle(&world.record, &world.horizon, false, &model));
    assert_int_equal(world.record.count, 0);
    assert_int_equal(merge_record_window_bytes(&world.record), 0);
    assert_text(&world, "aaaaa");
    fini(&world);
}

static void a_late_operation_runs_at_the_base(void **state)
{
    struct world world = {0};

    (void)state;
    place(&world, 20, "+b");
    world.horizon.frontier = 20;
    merge_record_settle(&world.record, &world.horizon, false, &model);
    place(&world, 30, "+c");
    assert_int_equal(place(&world, 10, "+a"), MERGE_LATE);
    assert_text(&world, "bac");
    assert_int_equal(place(&world, 10, "=x"), MERGE_LATE); /* the key is there: dropped */
    assert_text(&world, "bac");
    fini(&world);
}

static void below_the_floor_nothing_is_known_of_a_missing_key(void **state)
{
    struct world world = {.horizon = {.frontier = 50, .floor = 50}};

    (void)state;
    assert_int_equal(place(&world, 40, "=x"), MERGE_LATE);
    assert_text(&world, "x");
    assert_int_equal(world.record.base_place.stamp, 40);
    fini(&world);
}

static void a_flush_takes_what_is_older(void **state)
{
    struct world world = {0};

    (void)state;
    place(&world, 10, "+a");
    place(&world, 30, "+c");
    assert_int_equal(merge_record_flush(&world.record, (struct merge_place){20, 1}, &model), MERGE_PLACED);
    assert_text(&world, "c");
    assert_int_equal(merge_record_flush(&world.record, (struct merge_place){15, 1}, &model), MERGE_OVERWRITTEN);
    world.horizon.flush = (struct merge_place){20, 1};
    assert_int_equal(place(&world, 12, "+b"), MERGE_FLUSHED);
    assert_int_equal(merge_record_flush(&world.record, (struct merge_place){40, 1}, &model), MERGE_APPENDED);
    fini(&world);
}

static void an_eviction_stands_behind_what_it_saw(void **state)
{
    struct world world = {0};

    (void)state;
    place(&world, 10, "+a");
    place(&world, 20, "+b");
    assert_int_equal(evict(&world, 30, 10), MERGE_PLACED);
    assert_text(&world, "b");
    assert_int_equal(evict(&world, 31, 10), MERGE_OVERWRITTEN); /* another one that saw the same */
    assert_text(&world, "b");
    fini(&world);
}

static void memory_of_what_expired_goes_by_wall_time(void **state)
{
    struct world world = {0};

    (void)state;
    place(&world, 10, "+a");
    place(&world, 11, "@5");
    world.horizon.frontier = 100;
    world.horizon.wall = 4;
    assert_false(merge_record_settle(&world.record, &world.horizon, false, &model));
    assert_text(&world, "a");
    world.horizon.wall = 5;
    assert_false(merge_record_settle(&world.record, &world.horizon, true, &model)); /* dirty: it stays */
    assert_true(merge_record_settle(&world.record, &world.horizon, false, &model));
    assert_text(&world, NULL);
    fini(&world);
}

static void a_list_given_up_makes_the_older_late(void **state)
{
    struct world world = {0};

    (void)state;
    place(&world, 10, "=a");
    place(&world, 20, "+b");
    place(&world, 30, "+c");
    merge_record_forget_list(&world.record, &model);
    assert_text(&world, "abc");
    assert_int_equal(world.record.count, 0);
    assert_int_equal(place(&world, 25, "+x"), MERGE_LATE);
    assert_text(&world, "abcx");
    fini(&world);
}

static void a_copy_is_its_own(void **state)
{
    struct world world = {0}, copy = {.exists = true};

    (void)state;
    place(&world, 10, "+a");
    place(&world, 30, "+c");
    merge_record_copy(&copy.record, &world.record, &model);
    place(&world, 20, "+b");
    assert_text(&copy, "ac");
    place(&copy, 20, "+x");
    assert_text(&world, "abc");
    assert_text(&copy, "axc");
    fini(&world);
    fini(&copy);
}

static void a_record_leaves_lent_room_when_it_needs_more(void **state)
{
    struct world world = {.exists = true};
    struct merge_step room = {0};

    (void)state;
    merge_record_lend(&world.record, &room, 1);
    place(&world, 20, "+b");
    assert_ptr_equal(world.record.steps, &room);
    place(&world, 10, "+a");
    assert_ptr_not_equal(world.record.steps, &room);
    assert_text(&world, "ab");
    fini(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_run_in_their_order),
        cmocka_unit_test(what_overwrites_becomes_the_base),
        cmocka_unit_test(what_was_refused_may_work_later),
        cmocka_unit_test(what_has_expired_is_not_met),
        cmocka_unit_test(settled_operations_go_into_the_base),
        cmocka_unit_test(a_late_operation_runs_at_the_base),
        cmocka_unit_test(below_the_floor_nothing_is_known_of_a_missing_key),
        cmocka_unit_test(a_flush_takes_what_is_older),
        cmocka_unit_test(an_eviction_stands_behind_what_it_saw),
        cmocka_unit_test(memory_of_what_expired_goes_by_wall_time),
        cmocka_unit_test(a_list_given_up_makes_the_older_late),
        cmocka_unit_test(a_copy_is_its_own),
        cmocka_unit_test(a_record_leaves_lent_room_when_it_needs_more),
    };

    mem_thread_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
