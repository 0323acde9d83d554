#include "base/mem.h"
#include "base/test_seed.h"
#include "data/former.h"
#include "data/list.h"
#include "data/undo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_MOST = 20000, FORMERS_MOST = 4 };

/* ------------------------------------------------------------------------------------------ a former, and a copy -- */

struct watched {
    struct value_log log;
    struct former *former;  /* NULL: there is none */
    struct quicklist *copy; /* of the moment */
    uint64_t given;
    uint64_t given_bytes; /* in the last piece */
    bool has_ended;
};

static void begin(struct watched *watched, struct value value)
{
    assert_true(former_suits(&list_ops, value));
    watched->former = former_create(&list_ops, value);
    watched->copy = quicklist_copy(list_of(value));
    watched->given = 0;
    watched->has_ended = false;
    watched->log.ignored = list_ops.former->ignored;
    assert_int_equal(watched->former->count, quicklist_count(watched->copy));
    assert_null(former_rest(watched->former).data);
}

static void end(struct watched *watched)
{
    former_destroy(&watched->former);
    assert_null(watched->former);
    quicklist_destroy(&watched->copy);
    buffer_fini(&watched->log.steps);
}

static void expect_next(const struct former_element *element, void *context)
{
    struct watched *watched = context;
    char scratch[NUMBER_I64_SPACE];
    struct listpack_value value;
    struct quicklist_iter iter;

    assert_true(watched->given < quicklist_count(watched->copy));
    quicklist_iter_init(&iter, watched->copy, (int64_t)watched->given, QUICKLIST_FORWARD);
    assert_true(quicklist_iter_next(&iter, &value));
    assert_true(slice_equal(element->first, listpack_value_text(&value, scratch)));
    assert_int_equal(element->second.size, 0);
    quicklist_iter_fini(&iter);
    watched->given++;
    watched->given_bytes += element->first.size;
}

static void give(struct watched *watched, struct value value, uint64_t most)
{
    const uint64_t before = watched->given;
    bool more;

    if (watched->has_ended)
        return;
    watched->given_bytes = 0;
    more = former_give(watched->former, value, most, expect_next, watched);
    assert_true(watched->given - before <= most);
    assert_true(watched->given_bytes < FORMER_PIECE_BYTES + TEXT_MOST);
    assert_true(watched->given > before || !more);
    assert_int_equal(more, watched->given < quicklist_count(watched->copy));
    watched->has_ended = !more;
    if (!more)
        assert_true(watched->former->bytes <= 1024);
}

static void give_all(struct watched *watched, struct value value, uint64_t most)
{
    while (!watched->has_ended)
        give(watched, value, most);
    assert_int_equal(watched->given, quicklist_count(watched->copy));
}

static void watch(struct watched *watched, struct value value)
{
    value_log_watch(&watched->log, value.data);
}

static void keep(struct watched *watched, struct value value)
{
    assert_ptr_equal(watched->log.data, value.data);
    if (watched->log.steps.size != 0)
        former_keep(watched->former, value, buffer_slice(&watched->log.steps));
    buffer_clear(&watched->log.steps);
    value_log_ignore(&watched->log);
}

/* ------------------------------------------------------------------------------------------------------ changes -- */

static char room[TEXT_MOST + 64];

static struct slice random_text(struct random *random)
{
    const uint64_t dice = random_below(random, 60);
    size_t size;

    if (dice < 20)
        return slice_make(room, number_format_i64(room, (int64_t)random_u64(random) >> random_below(random, 64)));
    if (dice == 20)
        return SLICE_EMPTY;
    size = random_below(random, dice == 59 ? TEXT_MOST : dice >= 56 ? 3000 : 40);
    for (size_t i = 0; i < size; i++)
        room[i] = dice % 2 != 0 ? (char)random_u64(random) : 'x';
    return slice_make(room, size);
}

/* A push behind others cannot be taken back while these are there. */
static void push_some(struct random *random, struct quicklist *list, bool at_end)
{
    const enum quicklist_end end_of = random_below(random, 2) != 0 ? QUICKLIST_HEAD : QUICKLIST_TAIL;
    const uint64_t behind = !at_end && random_below(random, 3) == 0 ? random_below(random, quicklist_count(list) + 1)
                                                                    : 0;

    for (uint64_t count = 1 + random_below(random, 4); count != 0; count--) {
        if (behind != 0)
            quicklist_push_behind(list, end_of, behind, random_text(random));
        else
            quicklist_push(list, end_of, random_text(random));
    }
}

static void drop_some(struct random *random, struct quicklist *list)
{
    const enum quicklist_end end_of = random_below(random, 2) != 0 ? QUICKLIST_HEAD : QUICKLIST_TAIL;
    uint64_t count = random_below(random, 100) == 0 ? UINT64_MAX : 1 + random_below(random, 4);

    for (; count != 0 && quicklist_count(list) != 0; count--)
        quicklist_drop(list, end_of);
}

static void delete_some(struct random *random, struct quicklist *list)
{
    const int64_t count = (int64_t)quicklist_count(list);
    const int64_t start = (int64_t)random_below(random, 2 * (uint64_t)count + 2) - count - 1;

    (void)quicklist_delete_range(list, start, random_below(random, random_below(random, 30) == 0 ? 300 : 8));
}

static void append_pack(struct random *random, struct quicklist *list)
{
    struct listpack *pack = listpack_create();

    for (uint64_t count = random_below(random, 6); count != 0; count--)
        listpack_append(&pack, random_text(random));
    quicklist_append_listpack(list, &pack);
}

/* As LINSERT, LREM and LSET do, but several of them on one way. */
static void change_on_the_way(struct random *random, struct quicklist *list)
{
    const int64_t index = (int64_t)random_below(random, quicklist_count(list) + 1);
    const bool is_forward = random_below(random, 2) != 0;
    uint64_t changes = 1 + random_below(random, 5);
    struct listpack_value value;
    struct quicklist_iter iter;

    quicklist_iter_init(&iter, list, index, is_forward ? QUICKLIST_FORWARD : QUICKLIST_BACKWARD);
    while (changes != 0 && quicklist_iter_next(&iter, &value)) {
        const uint64_t dice = random_below(random, 8);

        changes -= dice < 4;
        if (dice == 0)
            quicklist_insert_before(list, &iter, random_text(random));
        else if (dice == 1)
            quicklist_insert_after(list, &iter, random_text(random));
        else if (dice == 2)
            quicklist_replace(list, &iter, random_text(random));
        else if (dice == 3)
            quicklist_delete(list, &iter);
    }
    quicklist_iter_fini(&iter);
}

static void change(struct random *random, struct quicklist *list, uint64_t wanted, bool at_end)
{
    const uint64_t dice = random_below(random, 100);

    if (dice < 20 || quicklist_count(list) == 0)
        quicklist_count(list) < wanted ? push_some(random, list, at_end) : drop_some(random, list);
    else if (dice < 35)
        push_some(random, list, at_end);
    else if (dice < 50)
        drop_some(random, list);
    else if (dice < 60)
        delete_some(random, list);
    else if (dice < 65)
        append_pack(random, list);
    else
        change_on_the_way(random, list);
}

static const struct quicklist_limits rows[] = {{.fill = -2},
                                               {.fill = 1},
                                               {.fill = 5, .compress = 1},
                                               {.fill = 50, .compress = 2, .plain_from_bytes = 20},
                                               {.fill = -1, .compress = 1},
                                               {.fill = 20, .plain_from_bytes = 30}};

static struct value random_list(struct random *random, uint64_t count)
{
    struct value value = list_create(&rows[random_below(random, countof(rows))]);

    while (count != 0 && quicklist_count(list_of(value)) < count)
        quicklist_push(list_of(value), QUICKLIST_TAIL, random_text(random));
    return value;
}

/* -------------------------------------------------------------------------------------------------------- tests -- */

static void watch_all(struct watched formers[FORMERS_MOST], struct value value)
{
    for (unsigned i = 0; i < FORMERS_MOST; i++) {
        if (formers[i].former != NULL)
            watch(&formers[i], value);
    }
}

static void keep_all(struct watched formers[FORMERS_MOST], struct value value)
{
    for (unsigned i = 0; i < FORMERS_MOST; i++) {
        if (formers[i].former != NULL)
            keep(&formers[i], value);
    }
}

static void compare(const struct quicklist *list, const struct quicklist *expected)
{
    struct listpack_value one, other;
    char scratch[2][NUMBER_I64_SPACE];
    struct quicklist_iter a, b;

    assert_int_equal(quicklist_count(list), quicklist_count(expected));
    quicklist_iter_init(&a, list, 0, QUICKLIST_FORWARD);
    quicklist_iter_init(&b, expected, 0, QUICKLIST_FORWARD);
    while (quicklist_iter_next(&a, &one) && quicklist_iter_next(&b, &other))
        assert_true(slice_equal(listpack_value_text(&one, scratch[0]), listpack_value_text(&other, scratch[1])));
    quicklist_iter_fini(&a);
    quicklist_iter_fini(&b);
}

static void take_back(struct value value, const struct value_log *taken, const struct quicklist *before)
{
    struct slice steps = buffer_slice(&taken->steps);
    struct value_step step;

    while (value_steps_take(&steps, &step))
        list_ops.undo(&value, &step);
    quicklist_validate(list_of(value));
    compare(list_of(value), before);
}

static void begin_anew(struct watched *watched, struct value value)
{
    if (watched->former != NULL)
        end(watched);
    begin(watched, value);
}

/* Changes that may be taken back, which is a change too. */
static void change_all(struct random *random, struct watched formers[FORMERS_MOST], struct value value, uint64_t wanted)
{
    struct quicklist *before = random_below(random, 4) == 0 ? quicklist_copy(list_of(value)) : NULL;
    struct value_log taken = {0};

    watch_all(formers, value);
    if (before != NULL)
        value_log_watch(&taken, value.data);
    for (uint64_t count = random_below(random, 4); count != 0; count--)
        change(random, list_of(value), wanted, before != NULL);
    value_log_ignore(&taken);
    keep_all(formers, value);
    if (before != NULL) {
        if (random_below(random, 4) == 0)
            begin_anew(&formers[random_below(random, FORMERS_MOST)], value); /* in between */
        watch_all(formers, value);
        take_back(value, &taken, before);
        keep_all(formers, value);
    }
    quicklist_destroy(&before);
    buffer_fini(&taken.steps);
}

/* Some begin when others are halfway, some end halfway, and the last ones when the list no longer changes. */
static void random_steps(struct random *random)
{
    const uint64_t wanted = random_below(random, 5) == 0 ? 10 : 20 + random_below(random, 500);
    struct value value = random_list(random, wanted);
    struct watched formers[FORMERS_MOST] = {0};
    const uint64_t most = 1 + random_below(random, 40), gives_in = 1 + random_below(random, 10);

    for (unsigned step = 0; step < 300; step++) {
        struct watched *one = &formers[random_below(random, countof(formers))];

        if (one->former == NULL)
            begin(one, value);
        else if (random_below(random, 50) == 0)
            end(one);
        else if (random_below(random, gives_in) == 0)
            give(one, value, 1 + random_below(random, most));
        change_all(random, formers, value, wanted);
    }
    for (unsigned i = 0; i < countof(formers); i++) {
        if (formers[i].former != NULL) {
            give_all(&formers[i], value, most);
            end(&formers[i]);
        }
    }
    list_ops.destroy(value);
}

static void a_list_is_given_as_it_was(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (unsigned i = 0; i < 300; i++)
        random_steps(&random);
}

static void change_an_end(struct random *random, struct quicklist *list)
{
    const uint64_t dice = random_below(random, 5), count = quicklist_count(list), some = 1 + random_below(random, 9);

    if (dice <= 1)
        push_some(random, list, true);
    else if (dice == 2)
        drop_some(random, list);
    else /* as LTRIM */
        (void)quicklist_delete_range(list, dice == 3 ? 0 : (int64_t)(count - MIN(count, some)), some);
}

/* What was done at the ends before the former was there is taken back; also behind changes that it was told of. */
static void take_ends_back(struct random *random)
{
    struct value value = random_list(random, 1 + random_below(random, 300));
    struct watched watched = {.copy = quicklist_copy(list_of(value))};
    struct value_log before = {0};
    struct value_step step;
    struct slice steps;

    value_log_watch(&before, value.data);
    for (uint64_t count = random_below(random, 60); count != 0; count--)
        change_an_end(random, list_of(value));
    value_log_ignore(&before);
    steps = buffer_slice(&before.steps);
    assert_true(former_takes_back(&list_ops, value, steps));
    watched.former = former_create(&list_ops, value);
    while (value_steps_take(&steps, &step)) {
        if (random_below(random, 4) == 0) {
            watch(&watched, value);
            change(random, list_of(value), 300, false);
            keep(&watched, value);
        }
        former_take_back(watched.former, value, &step);
    }
    assert_int_equal(watched.former->count, quicklist_count(watched.copy));
    while (!watched.has_ended) {
        give(&watched, value, 1 + random_below(random, 60));
        watch(&watched, value);
        change(random, list_of(value), 300, false);
        keep(&watched, value);
    }
    assert_int_equal(watched.given, quicklist_count(watched.copy));
    end(&watched);
    buffer_fini(&before.steps);
    list_ops.destroy(value);
}

static void a_list_is_given_as_it_was_before_the_moment(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (unsigned i = 0; i < 2000; i++)
        take_ends_back(&random);
}

/* These need the elements around. */
static void what_was_done_in_the_midst_is_not_taken_back(void **state)
{
    struct value value = list_create(&rows[0]);
    struct value_log log = {0};

    (void)state;
    for (unsigned i = 0; i < 10; i++)
        quicklist_push(list_of(value), QUICKLIST_TAIL, SLICE("x"));
    value_log_watch(&log, value.data);
    (void)quicklist_delete_range(list_of(value), 9, 1);
    assert_true(former_takes_back(&list_ops, value, buffer_slice(&log.steps)));
    (void)quicklist_delete_range(list_of(value), 4, 2);
    assert_false(former_takes_back(&list_ops, value, buffer_slice(&log.steps)));
    value_log_ignore(&log);
    buffer_fini(&log.steps);
    list_ops.destroy(value);
}

static struct value numbers(uint64_t count)
{
    struct value value = list_create(&(struct quicklist_limits){.fill = -2, .compress = 1});
    char text[NUMBER_I64_SPACE];

    for (uint64_t i = 0; i < count; i++)
        quicklist_push(list_of(value), QUICKLIST_TAIL, slice_make(text, number_format_i64(text, (int64_t)i)));
    return value;
}

static void drop_one(struct watched *watched, struct value value, enum quicklist_end end_of)
{
    watch(watched, value);
    quicklist_drop(list_of(value), end_of);
    keep(watched, value);
}

/* Each drop costs the same: with a cost that grows this would not end. Each text is kept with little beside it. */
static void a_million_drops_at_either_end_are_cheap(void **state)
{
    enum { COUNT = 1000000 };
    static const unsigned at_head_of[] = {0, 1, 2}; /* of two */

    (void)state;
    for (unsigned row = 0; row < countof(at_head_of); row++) {
        struct value value = numbers(COUNT);
        struct watched watched = {0};

        begin(&watched, value);
        for (unsigned i = 0; i < COUNT; i++)
            drop_one(&watched, value, i % 2 < at_head_of[row] ? QUICKLIST_HEAD : QUICKLIST_TAIL);
        assert_int_equal(quicklist_count(list_of(value)), 0);
        assert_in_range(watched.former->bytes, COUNT * 8, COUNT * 20);
        for (unsigned i = 0; i < 1000; i++) { /* the walk over the copy is slow */
            give(&watched, value, 1);
            assert_in_range(watched.former->bytes, COUNT * 8, COUNT * 20);
        }
        end(&watched);
        list_ops.destroy(value);
    }
}

static void what_was_given_is_not_kept(void **state)
{
    struct value value = numbers(1000);
    struct watched watched = {0};
    uint64_t bytes;

    (void)state;
    begin(&watched, value);
    bytes = watched.former->bytes;
    assert_in_range(bytes, 1, 1024);
    for (unsigned i = 0; i < 50; i++)
        give(&watched, value, 10);
    for (unsigned i = 0; i < 500; i++)
        drop_one(&watched, value, QUICKLIST_HEAD);
    assert_int_equal(watched.former->bytes, bytes);
    drop_one(&watched, value, QUICKLIST_HEAD);
    assert_true(watched.former->bytes > bytes);
    drop_one(&watched, value, QUICKLIST_TAIL);
    give_all(&watched, value, 100);
    assert_true(watched.former->bytes <= bytes);
    end(&watched);
    list_ops.destroy(value);
}

static void replace_at(struct watched *watched, struct value value, int64_t index, struct slice text)
{
    struct listpack_value old;
    struct quicklist_iter iter;

    watch(watched, value);
    quicklist_iter_init(&iter, list_of(value), index, QUICKLIST_FORWARD);
    assert_true(quicklist_iter_next(&iter, &old));
    quicklist_replace(list_of(value), &iter, text);
    quicklist_iter_fini(&iter);
    keep(watched, value);
}

/* Segments are as many as there are changes apart; all of them are free again, piece by piece. */
static void many_segments_come_and_go(void **state)
{
    enum { COUNT = 6000 };
    struct value value = numbers(COUNT);
    struct watched watched = {0};
    uint64_t most_bytes;

    (void)state;
    begin(&watched, value);
    for (int64_t i = COUNT; (i -= 3) > 0;)
        replace_at(&watched, value, i, SLICE("new"));
    most_bytes = watched.former->bytes;
    for (unsigned i = 0; i < 50; i++)
        give(&watched, value, 100);
    assert_true(watched.former->bytes < most_bytes / 2);
    watch(&watched, value);
    (void)quicklist_delete_range(list_of(value), 0, COUNT);
    keep(&watched, value);
    for (unsigned i = 0; i < 10; i++) {
        watch(&watched, value);
        quicklist_push(list_of(value), i % 2 ? QUICKLIST_HEAD : QUICKLIST_TAIL, SLICE("again"));
        keep(&watched, value);
    }
    give_all(&watched, value, 100);
    end(&watched);
    list_ops.destroy(value);
}

/* Many new elements between two that are to be given: they are jumped, and a piece has its length all the same. */
static void new_elements_are_passed_over(void **state)
{
    struct value value = numbers(100);
    struct watched watched = {0};

    (void)state;
    begin(&watched, value);
    watch(&watched, value);
    for (unsigned i = 0; i < 20; i++) {
        for (unsigned k = 0; k < i * 50; k++)
            quicklist_push_behind(list_of(value), QUICKLIST_HEAD, i * 5 + i * (i - 1) / 2 * 50, SLICE("new"));
    }
    keep(&watched, value);
    assert_int_equal(quicklist_count(list_of(value)), 100 + 190 * 50);
    give(&watched, value, 64);
    assert_in_range(watched.given, 5, 12);
    give_all(&watched, value, 64);
    end(&watched);
    list_ops.destroy(value);
}

static void long_texts_end_a_piece(void **state)
{
    struct value value = list_create(&(struct quicklist_limits){.fill = -2});
    struct watched watched = {0};

    (void)state;
    memset(room, 'x', TEXT_MOST);
    for (unsigned i = 0; i < 20; i++)
        quicklist_push(list_of(value), QUICKLIST_TAIL, slice_make(room, TEXT_MOST));
    begin(&watched, value);
    for (unsigned i = 0; i < 8; i++)
        drop_one(&watched, value, i < 4 ? QUICKLIST_HEAD : QUICKLIST_TAIL);
    give(&watched, value, 1000);
    assert_int_equal(watched.given, 4);
    give(&watched, value, 1000);
    assert_int_equal(watched.given, 8);
    give_all(&watched, value, 1000);
    end(&watched);
    list_ops.destroy(value);
}

static void an_empty_list_has_nothing_to_give(void **state)
{
    struct value value = numbers(0);
    struct watched watched = {0};

    (void)state;
    begin(&watched, value);
    watch(&watched, value);
    quicklist_push(list_of(value), QUICKLIST_HEAD, SLICE("new"));
    keep(&watched, value);
    give(&watched, value, 10);
    assert_true(watched.has_ended);
    assert_int_equal(watched.given, 0);
    end(&watched);
    list_ops.destroy(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_given_as_it_was),
        cmocka_unit_test(a_list_is_given_as_it_was_before_the_moment),
        cmocka_unit_test(what_was_done_in_the_midst_is_not_taken_back),
        cmocka_unit_test(a_million_drops_at_either_end_are_cheap),
        cmocka_unit_test(what_was_given_is_not_kept),
        cmocka_unit_test(many_segments_come_and_go),
        cmocka_unit_test(new_elements_are_passed_over),
        cmocka_unit_test(long_texts_end_a_piece),
        cmocka_unit_test(an_empty_list_has_nothing_to_give),
    };

    return cmocka_run_group_tests_name("former_list", tests, NULL, NULL);
}
