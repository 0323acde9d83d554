#include "data/zindex.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/test_seed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The model: the same items in a sorted array. */
enum { MODEL_MOST = 40000 };

static struct zindex_item *model[MODEL_MOST];
static uint64_t model_count;
static struct zindex zindex;
static uint64_t score_kinds; /* how many different scores are drawn */

static uint64_t model_place(const struct zindex_item *item)
{
    uint64_t begin = 0, end = model_count;

    while (begin < end) {
        uint64_t middle = (begin + end) / 2;

        if (zindex_compare(model[middle], item) < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

static bool model_has(const struct zindex_item *item)
{
    uint64_t place = model_place(item);

    return place < model_count && zindex_compare(model[place], item) == 0;
}

static void model_put(struct zindex_item *item)
{
    uint64_t place = model_place(item);

    assert_true(model_count < MODEL_MOST);
    memmove(&model[place + 1], &model[place], (model_count - place) * sizeof(*model));
    model[place] = item;
    model_count++;
}

static void model_take(uint64_t rank, uint64_t count)
{
    memmove(&model[rank], &model[rank + count], (model_count - rank - count) * sizeof(*model));
    model_count -= count;
}

static double some_score(struct random *random)
{
    uint64_t number = random_below(random, score_kinds);

    if (number == 0)
        return random_below(random, 2) != 0 ? 0.0 : -0.0;
    if (number == 1)
        return random_below(random, 2) != 0 ? INFINITY : -INFINITY;
    return ((double)number - (double)score_kinds / 2) / 4;
}

/* Short members of few letters, among them the empty one and zero bytes: prefixes of each other, and many ties. */
static struct slice some_member(struct random *random, char *space, size_t space_bytes)
{
    static const char letters[] = {'\0', 'a', 'b', '\x7f', '\x80', '\xff'};
    size_t size = random_below(random, space_bytes + 1);

    for (size_t i = 0; i < size; i++)
        space[i] = letters[random_below(random, sizeof(letters))];
    return slice_make(space, size);
}

static struct zindex_item *some_item(struct random *random)
{
    char space[7];
    double score = some_score(random);
    int64_t deadline_ms = random_below(random, 8) == 0 ? (int64_t)random_below(random, 1000) : ZINDEX_NO_DEADLINE;

    return zindex_item_create(score, some_member(random, space, sizeof(space)), deadline_ms);
}

static void put(struct zindex_item *item)
{
    if (model_has(item)) {
        zindex_item_destroy(item);
        return;
    }
    zindex_insert(&zindex, item);
    model_put(item);
}

static void take_at(uint64_t rank)
{
    struct zindex_item *item = model[rank];

    zindex_remove(&zindex, item);
    model_take(rank, 1);
    zindex_item_destroy(item);
}

static void set_score_at(uint64_t rank, double score)
{
    struct zindex_item *item = model[rank], *probe;
    bool has;

    probe = zindex_item_create(score, zindex_item_member(item), ZINDEX_NO_DEADLINE);
    has = model_has(probe) && item->score != score;
    zindex_item_destroy(probe);
    if (has)
        return; /* the same member twice is possible here; equal items are not */
    model_take(rank, 1);
    zindex_set_score(&zindex, item, score);
    assert_true(item->score == score);
    model_put(item);
}

static void replace_at(uint64_t rank, int64_t deadline_ms)
{
    struct zindex_item *item = model[rank];
    struct zindex_item *by = zindex_item_create(item->score, zindex_item_member(item), deadline_ms);

    zindex_replace(&zindex, item, by);
    model[rank] = by;
    zindex_item_destroy(item);
}

static void expect_next(struct zindex_item *item, void *context)
{
    struct zindex_item ***expected = context;

    assert_ptr_equal(item, *(*expected)++);
    zindex_item_destroy(item);
}

static void take_range(uint64_t first, uint64_t end)
{
    struct zindex_item **expected = &model[first];

    zindex_remove_range(&zindex, first, end, expect_next, &expected);
    assert_ptr_equal(expected, &model[end]);
    model_take(first, end - first);
}

static void reset(void)
{
    struct zindex_item **expected = model;

    zindex_clear(&zindex, expect_next, &expected);
    assert_ptr_equal(expected, &model[model_count]);
    model_count = 0;
    zindex_validate(&zindex);
    assert_int_equal(zindex_memory_bytes(&zindex), 0);
}

/* Where the first item stands that does not precede, by asking each. */
static uint64_t place_of_score(double score, enum zindex_side side)
{
    uint64_t rank = 0;

    while (rank < model_count && (model[rank]->score < score || (side == ZINDEX_AFTER && model[rank]->score == score)))
        rank++;
    return rank;
}

static void check_cursor(struct zindex_cursor cursor, uint64_t rank)
{
    struct zindex_cursor other = cursor;

    assert_int_equal(cursor.rank, rank);
    for (uint64_t i = rank; i < model_count && i < rank + 200; i++)
        assert_ptr_equal(zindex_next(&cursor), model[i]);
    if (cursor.rank == model_count)
        assert_null(zindex_next(&cursor));
    for (uint64_t i = rank; i > 0 && i + 200 > rank; i--)
        assert_ptr_equal(zindex_previous(&other), model[i - 1]);
    if (other.rank == 0)
        assert_null(zindex_previous(&other));
    if (cursor.rank > 0) {
        const struct zindex_item *item = model[cursor.rank - 1];

        assert_ptr_equal(zindex_previous(&cursor), item); /* turning round */
    }
}

static void check_seeks(struct random *random)
{
    for (unsigned i = 0; i < 10; i++) {
        double score = some_score(random);
        uint64_t rank = random_below(random, model_count + 3);
        struct zindex_item *item = some_item(random);
        uint64_t place = model_place(item);

        check_cursor(zindex_seek_score(&zindex, score, ZINDEX_BEFORE), place_of_score(score, ZINDEX_BEFORE));
        check_cursor(zindex_seek_score(&zindex, score, ZINDEX_AFTER), place_of_score(score, ZINDEX_AFTER));
        check_cursor(zindex_seek_rank(&zindex, rank), MIN(rank, model_count));
        check_cursor(zindex_seek_item(&zindex, item, ZINDEX_BEFORE), place);
        check_cursor(zindex_seek_item(&zindex, item, ZINDEX_AFTER), place + model_has(item));
        assert_ptr_equal(zindex_at(&zindex, rank), rank < model_count ? model[rank] : NULL);
        if (rank < model_count)
            assert_int_equal(zindex_rank(&zindex, model[rank]), rank);
        zindex_item_destroy(item);
    }
}

static void check_all(void)
{
    struct zindex_cursor cursor = zindex_seek_rank(&zindex, 0);

    zindex_validate(&zindex);
    assert_int_equal(zindex_count(&zindex), model_count);
    for (uint64_t i = 0; i < model_count; i++) {
        assert_int_equal(zindex_rank(&zindex, model[i]), i);
        assert_ptr_equal(zindex_at(&zindex, i), model[i]);
        assert_int_equal(cursor.rank, i);
        assert_ptr_equal(zindex_next(&cursor), model[i]);
    }
    assert_null(zindex_next(&cursor));
    for (uint64_t i = model_count; i > 0; i--)
        assert_ptr_equal(zindex_previous(&cursor), model[i - 1]);
    assert_null(zindex_previous(&cursor));
}

static void one_step(struct random *random, unsigned insert_percent)
{
    uint64_t dice = random_below(random, 100);
    uint64_t rank = model_count != 0 ? random_below(random, model_count) : 0;

    if (dice < insert_percent || model_count == 0)
        put(some_item(random));
    else if (dice < insert_percent + 10)
        set_score_at(rank, some_score(random));
    else if (dice < insert_percent + 15)
        set_score_at(rank, nextafter(model[rank]->score, some_score(random)));
    else if (dice < insert_percent + 18)
        replace_at(rank, dice % 2 != 0 ? 5 : ZINDEX_NO_DEADLINE);
    else
        take_at(rank);
}

static void random_steps(struct random *random, uint64_t step_count, uint64_t steps_a_check)
{
    unsigned insert_percent = 60;

    for (uint64_t i = 0; i < step_count; i++) {
        if (i % (step_count / 8) == 0)
            insert_percent = i / (step_count / 8) % 2 == 0 ? 70 : 10;
        if (random_below(random, step_count / 10) == 0) {
            uint64_t first = random_below(random, model_count + 1);

            take_range(first, first + random_below(random, model_count - first + 1));
        }
        one_step(random, insert_percent);
        if (i % steps_a_check == 0) {
            zindex_validate(&zindex);
            check_seeks(random);
        }
    }
    check_all();
    reset();
}

static void random_steps_match_the_model(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (score_kinds = 1; score_kinds <= 3000; score_kinds = score_kinds * 3 + 1) {
        random_steps(&random, 600, 1);
        random_steps(&random, 40000, 997);
    }
}

static void every_small_index_is_built_and_emptied(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    score_kinds = 20;
    for (unsigned count = 0; count < 300; count++) {
        while (model_count < count) {
            put(some_item(&random));
            zindex_validate(&zindex);
        }
        assert_int_equal(zindex_count(&zindex), count);
        while (model_count > 0) {
            take_at(random_below(&random, model_count));
            zindex_validate(&zindex);
        }
        assert_null(zindex.root);
    }
    reset();
}

static void lex_ranges_match_the_model(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    score_kinds = 1;
    check_cursor(zindex_seek_lex(&zindex, ZINDEX_LEX_MEMBER, SLICE("a"), ZINDEX_BEFORE), 0);
    check_cursor(zindex_seek_lex(&zindex, ZINDEX_LEX_LAST, SLICE_EMPTY, ZINDEX_BEFORE), 0);
    for (unsigned i = 0; i < 5000; i++) {
        char space[7];
        struct slice member = some_member(&random, space, sizeof(space));
        struct zindex_item *item = zindex_item_create(0, member, ZINDEX_NO_DEADLINE);
        uint64_t place = model_place(item);

        check_cursor(zindex_seek_lex(&zindex, ZINDEX_LEX_MEMBER, member, ZINDEX_BEFORE), place);
        check_cursor(zindex_seek_lex(&zindex, ZINDEX_LEX_MEMBER, member, ZINDEX_AFTER), place + model_has(item));
        put(item);
    }
    check_cursor(zindex_seek_lex(&zindex, ZINDEX_LEX_FIRST, SLICE_EMPTY, ZINDEX_BEFORE), 0);
    check_cursor(zindex_seek_lex(&zindex, ZINDEX_LEX_LAST, SLICE_EMPTY, ZINDEX_BEFORE), model_count);
    reset();
}

/* Members with different scores: any answer will do, but it has to be one. */
static void lex_ranges_without_order_are_harmless(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    score_kinds = 100;
    for (unsigned i = 0; i < 3000; i++)
        put(some_item(&random));
    for (unsigned i = 0; i < 1000; i++) {
        char space[7];
        struct slice member = some_member(&random, space, sizeof(space));
        struct zindex_cursor cursor = zindex_seek_lex(&zindex, ZINDEX_LEX_MEMBER, member, (enum zindex_side)(i % 2));

        assert_true(cursor.rank <= model_count);
        check_cursor(cursor, cursor.rank);
    }
    reset();
}

static double fill(void)
{
    uint64_t leaf_bytes = mem_good_size(1024);

    return (double)model_count * 16 / (double)(zindex.leaf_count * leaf_bytes);
}

static void put_number(uint64_t number, double score)
{
    char text[32];

    snprintf(text, sizeof(text), "%08llu", (unsigned long long)number);
    put(zindex_item_create(score, slice_from_text(text), ZINDEX_NO_DEADLINE));
}

static void leaves_are_well_filled(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (unsigned i = 0; i < 20000; i++)
        put_number(i, i);
    check_all();
    assert_true(fill() > 0.95);
    reset();
    for (unsigned i = 0; i < 20000; i++)
        put_number(i, -(double)i);
    check_all();
    assert_true(fill() > 0.95);
    reset();
    for (unsigned i = 0; i < 30000; i++)
        put_number(i, random_unit(&random));
    check_all();
    assert_true(fill() > 0.7);
    while (model_count > 3000)
        take_at(random_below(&random, model_count));
    check_all();
    assert_true(fill() > 0.55);
    reset();
}

static void a_built_index_is_full_and_lives_on(void **state)
{
    static const uint64_t sizes[] = {0, 1, 5, 6, 7, 61, 62, 63, 124, 125, 1922, 1923, 5000, 20000};
    struct random random = test_random(__func__);

    (void)state;
    score_kinds = 50;
    for (size_t i = 0; i < countof(sizes); i++) {
        while (model_count < sizes[i])
            put(some_item(&random));
        zindex_clear(&zindex, NULL, NULL);
        zindex_build(&zindex, model, model_count);
        check_all();
        if (sizes[i] >= 5000)
            assert_true(fill() > 0.95);
        for (unsigned k = 0; k < 100; k++)
            one_step(&random, 50);
        check_all();
        reset();
    }
}

static void ranges_are_removed(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    score_kinds = 300;
    for (unsigned round = 0; round < 30; round++) {
        while (model_count < 4000)
            put(some_item(&random));
        while (model_count > 0) {
            uint64_t first = random_below(&random, model_count);

            take_range(first, first + 1 + random_below(&random, MIN(model_count - first, UINT64_C(1000))));
            zindex_validate(&zindex);
        }
    }
    while (model_count < 4000)
        put(some_item(&random));
    zindex_remove_range(&zindex, 3000, 2000, expect_next, NULL);
    zindex_remove_range(&zindex, 4000, UINT64_MAX, expect_next, NULL);
    take_range(0, 4000);
    assert_null(zindex.root);
    reset();
}

/* The first leaf of an inner node goes, at once and item by item: between full neighbours it joins none. */
static void the_first_leaf_of_an_inner_node_goes(void **state)
{
    enum { LEAF = 62, INNER = 31 * LEAF };

    (void)state;
    for (unsigned one_by_one = 0; one_by_one < 2; one_by_one++) {
        for (unsigned i = 0; i < 3 * INNER; i++)
            put_number(i, i);
        assert_int_equal(zindex.leaf_count, 3 * 31);
        assert_int_equal(zindex.inner_count, 3 + 1);
        for (unsigned i = 0; one_by_one != 0 && i < LEAF; i++) {
            take_at(INNER);
            zindex_validate(&zindex);
        }
        if (one_by_one == 0)
            take_range(INNER, INNER + LEAF);
        assert_int_equal(zindex.leaf_count, 3 * 31 - 1);
        check_all();
        reset();
    }
}

/* The score of an item changes within its neighbours: nothing is allocated, nobody moves. */
static void a_score_changes_in_place(void **state)
{
    struct zindex_cursor cursor;

    (void)state;
    for (unsigned i = 0; i < 5000; i++)
        put_number(i, i * 10);
    for (unsigned i = 0; i < 5000; i++) {
        struct zindex_cursor before = zindex_seek_rank(&zindex, i);

        zindex_set_score(&zindex, model[i], i * 10 + 5);
        cursor = zindex_seek_rank(&zindex, i);
        assert_ptr_equal(cursor.leaf, before.leaf);
        assert_int_equal(cursor.slot, before.slot);
    }
    check_all();
    zindex_set_score(&zindex, model[7], model[8]->score); /* the smaller member goes first: still in place */
    zindex_set_score(&zindex, model[10], model[9]->score);
    check_all();
    reset();
}

static void items_carry_deadlines(void **state)
{
    struct zindex_item *plain = zindex_item_create(1.5, SLICE("member"), ZINDEX_NO_DEADLINE);
    struct zindex_item *dated = zindex_item_create(1.5, SLICE("member"), INT64_C(1234567890123));

    (void)state;
    assert_int_equal(zindex_item_deadline(plain), ZINDEX_NO_DEADLINE);
    assert_int_equal(zindex_item_deadline(dated), INT64_C(1234567890123));
    assert_int_equal(zindex_compare(plain, dated), 0);
    assert_true(slice_equal(zindex_item_member(dated), SLICE("member")));
    assert_true(zindex_item_memory_bytes(plain) >= 18);
    assert_true(zindex_item_memory_bytes(dated) >= 26);
    zindex_item_destroy(plain);
    zindex_item_destroy(dated);
    zindex_item_destroy(NULL);
}

static void order_is_by_score_and_then_by_bytes(void **state)
{
    static const struct {
        double score;
        struct slice member;
    } sorted[] = {
        {-INFINITY, {"z", 1}}, {-1, {"z", 1}}, {-0.0, {"a", 1}},    {0.0, {"b", 1}},  {-0.0, {"c", 1}},
        {1, {"", 0}},          {1, {"\0", 1}}, {1, {"\0\0", 2}},    {1, {"\x01", 1}}, {1, {"a", 1}},
        {1, {"a\0", 2}},       {1, {"aa", 2}}, {1, {"\x7f", 1}},    {1, {"\x80", 1}}, {1, {"\xff", 1}},
        {1.5, {"", 0}},        {2, {"", 0}},   {INFINITY, {"", 0}},
    };

    (void)state;
    for (size_t step = 1; step < countof(sorted); step++) {
        for (size_t i = 0; i < countof(sorted); i++) {
            size_t at = i * 7 * step % countof(sorted);

            put(zindex_item_create(sorted[at].score, sorted[at].member, ZINDEX_NO_DEADLINE));
            zindex_validate(&zindex);
        }
        if (model_count != countof(sorted)) { /* not all numbers of steps reach all */
            reset();
            continue;
        }
        for (size_t i = 0; i < countof(sorted); i++)
            assert_true(slice_equal(zindex_item_member(zindex_at(&zindex, i)), sorted[i].member));
        reset();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps_match_the_model),
        cmocka_unit_test(every_small_index_is_built_and_emptied),
        cmocka_unit_test(lex_ranges_match_the_model),
        cmocka_unit_test(lex_ranges_without_order_are_harmless),
        cmocka_unit_test(leaves_are_well_filled),
        cmocka_unit_test(a_built_index_is_full_and_lives_on),
        cmocka_unit_test(ranges_are_removed),
        cmocka_unit_test(the_first_leaf_of_an_inner_node_goes),
        cmocka_unit_test(a_score_changes_in_place),
        cmocka_unit_test(items_carry_deadlines),
        cmocka_unit_test(order_is_by_score_and_then_by_bytes),
    };

    return cmocka_run_group_tests_name("zindex", tests, NULL, NULL);
}
