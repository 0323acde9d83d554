#include "data/quicklist.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_MOST = 20000 };

static char room[TEXT_MOST + 64];

/* --- the model: an array of texts --- */

struct model {
    struct slice texts[4096];
    size_t count;
};

static struct model model;

static void model_insert(size_t index, struct slice text)
{
    assert_true(model.count < countof(model.texts));
    memmove(&model.texts[index + 1], &model.texts[index], (model.count - index) * sizeof(text));
    model.texts[index] = slice_make(mem_copy(text.data, text.size), text.size);
    model.count++;
}

static void model_delete(size_t index, size_t count)
{
    for (size_t i = index; i < index + count; i++)
        mem_free((void *)(uintptr_t)model.texts[i].data);
    model.count -= count;
    memmove(&model.texts[index], &model.texts[index + count], (model.count - index) * sizeof(struct slice));
}

static void model_clear(void)
{
    model_delete(0, model.count);
}

/* Integers, short texts that repeat, and some long ones: of one byte repeated, or of any. */
static struct slice random_text(struct random *random)
{
    uint64_t dice = random_below(random, 40);
    size_t size;

    if (dice < 10)
        return slice_make(room, number_format_i64(room, (int64_t)random_u64(random) >> random_below(random, 64)));
    if (dice < 30)
        return slice_make(room, (size_t)snprintf(room, 32, "text %d", (int)random_below(random, 20)));
    size = random_below(random, dice == 39 ? TEXT_MOST : dice >= 36 ? 3000 : 120);
    if (dice % 2 != 0) {
        memset(room, 'x', size);
    } else {
        for (size_t i = 0; i < size; i++)
            room[i] = (char)random_u64(random);
    }
    return slice_make(room, size);
}

static void check_value(const struct listpack_value *value, struct slice expected)
{
    struct quicklist_needle needle = quicklist_needle_make(expected);
    char scratch[NUMBER_I64_SPACE];

    assert_true(slice_equal(listpack_value_text(value, scratch), expected));
    assert_true(quicklist_value_is(value, &needle));
}

static void check_walk(const struct quicklist *list, int64_t index, enum quicklist_direction direction)
{
    size_t i = (size_t)(index >= 0 ? index : index + (int64_t)model.count);
    struct listpack_value value;
    struct quicklist_iter iter;

    quicklist_iter_init(&iter, list, index, direction);
    for (; i < model.count; i += direction == QUICKLIST_FORWARD ? 1 : (size_t)-1) {
        assert_true(quicklist_iter_next(&iter, &value));
        assert_int_equal(iter.index, i);
        check_value(&value, model.texts[i]);
    }
    assert_false(quicklist_iter_next(&iter, &value));
    assert_false(quicklist_iter_next(&iter, &value));
    quicklist_iter_fini(&iter);
}

static void check_ends(const struct quicklist *list)
{
    struct listpack_value value;

    assert_int_equal(quicklist_peek(list, QUICKLIST_HEAD, &value), model.count != 0);
    if (model.count == 0)
        return;
    check_value(&value, model.texts[0]);
    assert_true(quicklist_peek(list, QUICKLIST_TAIL, &value));
    check_value(&value, model.texts[model.count - 1]);
}

static void check_all(const struct quicklist *list)
{
    quicklist_validate(list);
    assert_int_equal(quicklist_count(list), model.count);
    check_ends(list);
    check_walk(list, 0, QUICKLIST_FORWARD);
    check_walk(list, -1, QUICKLIST_BACKWARD);
}

/* --- steps --- */

static void push_one(struct random *random, struct quicklist *list)
{
    enum quicklist_end end = random_below(random, 2) != 0 ? QUICKLIST_HEAD : QUICKLIST_TAIL;
    size_t behind = random_below(random, 3) == 0 ? (size_t)random_below(random, model.count + 1) : 0;
    struct slice text = random_text(random);

    if (behind != 0)
        quicklist_push_behind(list, end, behind, text);
    else
        quicklist_push(list, end, text);
    model_insert(end == QUICKLIST_HEAD ? behind : model.count - behind, text);
}

static void drop_one(struct random *random, struct quicklist *list)
{
    enum quicklist_end end = random_below(random, 2) != 0 ? QUICKLIST_HEAD : QUICKLIST_TAIL;

    quicklist_drop(list, end);
    model_delete(end == QUICKLIST_HEAD ? 0 : model.count - 1, 1);
}

static void delete_some(struct random *random, struct quicklist *list)
{
    int64_t start = (int64_t)random_below(random, 2 * model.count + 2) - (int64_t)model.count - 1;
    size_t from = (size_t)(start < 0 ? start + (int64_t)model.count : start);
    uint64_t count = random_below(random, random_below(random, 10) == 0 ? model.count + 2 : 5);

    if (from >= model.count) {
        assert_int_equal(quicklist_delete_range(list, start, count), 0);
        return;
    }
    count = random_below(random, 100) == 0 ? UINT64_MAX : count;
    assert_int_equal(quicklist_delete_range(list, start, count), MIN(count, model.count - from));
    model_delete(from, MIN(count, model.count - from));
}

/* A walk that changes the elements it visits, with one change or many. */
static void change_on_the_way(struct random *random, struct quicklist *list)
{
    enum quicklist_direction direction = random_below(random, 2) != 0 ? QUICKLIST_FORWARD : QUICKLIST_BACKWARD;
    size_t i = random_below(random, model.count), step = direction == QUICKLIST_FORWARD ? 1 : (size_t)-1;
    uint64_t often = 1 + random_below(random, 20), steps = random_below(random, 60);
    bool delete_only = random_below(random, 2) != 0;
    struct listpack_value value;
    struct quicklist_iter iter;
    struct slice text;

    quicklist_iter_init(&iter, list, (int64_t)i - (random_below(random, 2) != 0 ? (int64_t)model.count : 0), direction);
    for (; i < model.count && steps-- != 0; i += step) {
        assert_true(quicklist_iter_next(&iter, &value));
        check_value(&value, model.texts[i]);
        if (random_below(random, often) != 0)
            continue;
        text = random_text(random);
        switch (delete_only ? 0 : random_below(random, 4)) {
        case 0:
            quicklist_delete(list, &iter);
            model_delete(i, 1);
            i -= direction == QUICKLIST_FORWARD ? 1 : 0;
            break;
        case 1:
            quicklist_insert_before(list, &iter, text);
            model_insert(i, text);
            i++;
            break;
        case 2:
            quicklist_insert_after(list, &iter, text);
            model_insert(i + 1, text);
            break;
        default:
            quicklist_replace(list, &iter, text);
            model_delete(i, 1);
            model_insert(i, text);
            break;
        }
        assert_int_equal(quicklist_count(list), model.count);
    }
    if (i >= model.count)
        assert_false(quicklist_iter_next(&iter, &value));
    quicklist_iter_fini(&iter);
}

/* A part of a walk over it; the next one may be far away, or a new one. */
static void relocate_some(struct random *random, struct quicklist **list)
{
    struct mem_mover mover = {0};

    mem_move_everything(true);
    (void)quicklist_relocate(list, random_below(random, 4), 1 + random_below(random, 100), &mover);
    mem_move_everything(false);
}

static void change(struct random *random, struct quicklist *list, size_t most)
{
    uint64_t dice = random_below(random, 100);

    if (model.count == 0 || dice < 40) {
        if (model.count < most)
            push_one(random, list);
        else
            delete_some(random, list);
    } else if (dice < 60) {
        drop_one(random, list);
    } else if (dice < 70) {
        delete_some(random, list);
    } else if (model.count + 60 < most) {
        change_on_the_way(random, list);
    }
}

/* From where it was searched last much may have changed. */
static void check_search(struct random *random, struct quicklist *list)
{
    for (unsigned i = 0; model.count != 0 && i < 4; i++) {
        const uint64_t index = random_below(random, model.count);

        assert_true(quicklist_may_have(list, QUICKLIST_HEAD, index + 1, model.texts[index]));
        assert_true(quicklist_may_have(list, QUICKLIST_TAIL, model.count - index, model.texts[index]));
    }
}

static void random_steps(const char *name, const struct quicklist_limits *limits)
{
    struct random random = test_random(name);
    struct quicklist *list = quicklist_create(limits);

    for (unsigned step = 0; step < 900; step++) {
        if (step % 300 == 0) {
            for (unsigned i = 0; i < 200; i++)
                push_one(&random, list);
        }
        if (random_below(&random, 4) == 0)
            relocate_some(&random, &list);
        change(&random, list, 600);
        check_all(list);
        check_search(&random, list);
        if (model.count != 0)
            check_walk(list, (int64_t)random_below(&random, model.count), QUICKLIST_FORWARD);
    }
    quicklist_destroy(&list);
    assert_null(list);
    model_clear();
}

static void random_steps_match_the_model(void **state)
{
    static const struct quicklist_limits rows[] = {
        {.fill = -2},
        {.fill = -1, .compress = 1},
        {.fill = -5},
        {.fill = 1},
        {.fill = 0, .compress = 1},
        {.fill = 3, .compress = 2},
        {.fill = 5, .compress = 1},
        {.fill = 16, .compress = 3},
        {.fill = 128},
        {.fill = 4, .compress = 1, .plain_from_bytes = 7},
        {.fill = -1, .compress = 2, .plain_from_bytes = 10000},
        {.fill = -99, .compress = 1000},
        {.fill = 8, .compress = 1, .plain_from_bytes = 1},
    };

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        printf("fill %d, compress %u, plain from %zu: ", rows[i].fill, rows[i].compress, rows[i].plain_from_bytes);
        random_steps(__func__, &rows[i]);
    }
}

/* --- nodes --- */

static void fill(struct quicklist *list, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        memset(room, (int)('a' + i % 26), size);
        quicklist_push(list, QUICKLIST_TAIL, slice_make(room, size));
    }
}

static void nodes_are_as_full_as_the_limits_allow(void **state)
{
    static const struct {
        int fill;
        size_t bytes;
    } rows[] = {{-1, 4096},  {-2, 8192},  {-3, 16384},   {-4, 32768},
                {-5, 65536}, {-6, 65536}, {32767, 8192}, {99999, 8192}};

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        struct quicklist *list = quicklist_create(&(struct quicklist_limits){.fill = rows[i].fill});
        const struct quicklist_node *node;

        fill(list, 20000, 30); /* 32 bytes each */
        quicklist_validate(list);
        for (node = quicklist_first_node(list); quicklist_next_node(list, node) != NULL;
             node = quicklist_next_node(list, node)) {
            assert_true(quicklist_node_size_bytes(node) <= rows[i].bytes);
            assert_true(quicklist_node_size_bytes(node) + 32 > rows[i].bytes);
        }
        assert_int_equal(quicklist_node_count(list), 20000 / ((rows[i].bytes - 7) / 32) + 1);
        quicklist_destroy(&list);
    }
}

static void nodes_have_the_number_of_elements_asked_for(void **state)
{
    struct quicklist *list = quicklist_create(&(struct quicklist_limits){.fill = 10});

    (void)state;
    fill(list, 1000, 5);
    assert_int_equal(quicklist_node_count(list), 100);
    assert_int_equal(quicklist_node_elements(quicklist_first_node(list)), 10);
    quicklist_destroy(&list);
}

static void long_texts_are_alone_and_plain(void **state)
{
    struct quicklist *list = quicklist_create(&(struct quicklist_limits){.fill = -2});
    const struct quicklist_node *node;
    struct buffer scratch = {0};

    (void)state;
    fill(list, 3, 100);
    fill(list, 1, 8192 - 7 - 10); /* the longest that fits */
    fill(list, 1, 8192 - 7 - 10 + 1);
    fill(list, 3, 100);
    assert_int_equal(quicklist_node_count(list), 4);
    node = quicklist_next_node(list, quicklist_first_node(list));
    assert_false(quicklist_node_is_plain(node));
    node = quicklist_next_node(list, node);
    assert_true(quicklist_node_is_plain(node));
    assert_int_equal(quicklist_node_elements(node), 1);
    assert_int_equal(quicklist_node_bytes(node, &scratch).size, 8192 - 7 - 10 + 1);
    quicklist_validate(list);
    quicklist_destroy(&list);
    buffer_fini(&scratch);
}

static void half_empty_nodes_do_not_add_up(void **state)
{
    struct quicklist *list = quicklist_create(&(struct quicklist_limits){.fill = 100, .compress = 1});
    struct quicklist_iter iter;
    struct listpack_value value;

    (void)state;
    fill(list, 10000, 20);
    assert_int_equal(quicklist_node_count(list), 100);
    for (unsigned keep = 2; keep <= 32; keep *= 4) { /* of 10000, then of the remaining ones */
        uint64_t count = quicklist_count(list);

        quicklist_iter_init(&iter, list, keep == 8 ? -1 : 0, keep == 8 ? QUICKLIST_BACKWARD : QUICKLIST_FORWARD);
        for (uint64_t i = 0; quicklist_iter_next(&iter, &value); i++) {
            if (i % keep != 0)
                quicklist_delete(list, &iter);
        }
        quicklist_iter_fini(&iter);
        quicklist_validate(list);
        assert_int_equal(quicklist_count(list), (count + keep - 1) / keep);
        assert_true(quicklist_node_count(list) <= quicklist_count(list) / 50 + 1);
    }
    quicklist_destroy(&list);
    list = quicklist_create(&(struct quicklist_limits){.fill = 100});
    fill(list, 10000, 20);
    for (int64_t i = 0; i < 1000; i++) /* by range: nine of ten */
        assert_int_equal(quicklist_delete_range(list, i, 9), 9);
    assert_true(quicklist_node_count(list) <= 20);
    quicklist_validate(list);
    quicklist_destroy(&list);
}

/* A list of nodes of at most ten, with these counts from head to tail. */
static struct quicklist *list_of_nodes(const uint32_t *counts, size_t node_count)
{
    struct quicklist *list = quicklist_create(&(struct quicklist_limits){.fill = 10});
    struct quicklist_node *node;
    int64_t index = 0;

    fill(list, 10 * node_count, 5);
    for (size_t i = 0; i < node_count; i++) { /* from head to tail: a neighbour is full while one shrinks */
        assert_int_equal(quicklist_delete_range(list, index, 10 - counts[i]), 10 - counts[i]);
        index += counts[i];
    }
    node = quicklist_first_node(list);
    for (size_t i = 0; i < node_count; i++, node = quicklist_next_node(list, node))
        assert_int_equal(quicklist_node_elements(node), counts[i]);
    return list;
}

static void check_nodes(struct quicklist **list, const uint32_t *counts, size_t node_count)
{
    const struct quicklist_node *node = quicklist_first_node(*list);

    quicklist_validate(*list);
    assert_int_equal(quicklist_node_count(*list), node_count);
    for (size_t i = 0; i < node_count; i++, node = quicklist_next_node(*list, node))
        assert_int_equal(quicklist_node_elements(node), counts[i]);
    quicklist_destroy(list);
}

#define NODES(...) ((const uint32_t[]){__VA_ARGS__}), sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

/* Deletes the element, then walks on over so many others. */
static void delete_and_walk(struct quicklist *list, int64_t index, enum quicklist_direction direction, unsigned steps)
{
    struct listpack_value value;
    struct quicklist_iter iter;

    quicklist_iter_init(&iter, list, index, direction);
    assert_true(quicklist_iter_next(&iter, &value));
    quicklist_delete(list, &iter);
    while (steps-- != 0)
        assert_true(quicklist_iter_next(&iter, &value));
    quicklist_iter_fini(&iter);
}

static void neighbours_are_joined_wherever_one_shrinks(void **state)
{
    struct quicklist *list;

    (void)state;
    list = list_of_nodes(NODES(6, 5, 9)); /* the last thing an iterator does */
    delete_and_walk(list, 0, QUICKLIST_FORWARD, 0);
    check_nodes(&list, NODES(10, 9));
    list = list_of_nodes(NODES(9, 5, 6));
    delete_and_walk(list, 14, QUICKLIST_FORWARD, 0);
    check_nodes(&list, NODES(9, 10));
    list = list_of_nodes(NODES(6, 5, 9)); /* on its way, before or behind where it goes */
    delete_and_walk(list, 0, QUICKLIST_FORWARD, 17);
    check_nodes(&list, NODES(10, 9));
    list = list_of_nodes(NODES(9, 5, 6));
    delete_and_walk(list, 15, QUICKLIST_FORWARD, 1);
    check_nodes(&list, NODES(9, 10));
    list = list_of_nodes(NODES(9, 5, 6));
    delete_and_walk(list, -1, QUICKLIST_BACKWARD, 17);
    check_nodes(&list, NODES(9, 10));
    list = list_of_nodes(NODES(10, 10, 6)); /* both sides of a range */
    assert_int_equal(quicklist_delete_range(list, 9, 7), 7);
    check_nodes(&list, NODES(9, 10));
    list = list_of_nodes(NODES(6, 10, 10));
    assert_int_equal(quicklist_delete_range(list, 10, 7), 7);
    check_nodes(&list, NODES(10, 9));
}

static void neighbours_of_a_deleted_plain_node_are_joined(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 3; way++) {
        struct quicklist *list = quicklist_create(&(struct quicklist_limits){.fill = 10, .plain_from_bytes = 100});

        fill(list, 5, 5);
        fill(list, 1, 100);
        fill(list, 4, 5);
        assert_int_equal(quicklist_node_count(list), 3);
        if (way < 2)
            delete_and_walk(list, 5, way == 0 ? QUICKLIST_FORWARD : QUICKLIST_BACKWARD, 4);
        else
            assert_int_equal(quicklist_delete_range(list, 5, 1), 1);
        check_nodes(&list, NODES(9));
    }
}

static void a_piece_of_a_split_node_joins_its_neighbour(void **state)
{
    struct quicklist *list = list_of_nodes(NODES(4, 10));
    struct quicklist_iter iter;
    struct listpack_value value;

    (void)state;
    quicklist_iter_init(&iter, list, 5, QUICKLIST_FORWARD);
    assert_true(quicklist_iter_next(&iter, &value));
    quicklist_insert_after(list, &iter, SLICE("new"));
    quicklist_iter_fini(&iter);
    check_nodes(&list, NODES(7, 8));
    list = list_of_nodes(NODES(10, 4));
    quicklist_iter_init(&iter, list, 8, QUICKLIST_BACKWARD);
    assert_true(quicklist_iter_next(&iter, &value));
    quicklist_insert_before(list, &iter, SLICE("new"));
    quicklist_iter_fini(&iter);
    check_nodes(&list, NODES(9, 6));
}

static void a_longer_text_does_not_overfill_a_node(void **state)
{
    struct quicklist *list = quicklist_create(&(struct quicklist_limits){.fill = -1});
    struct quicklist_iter iter;
    struct listpack_value value;

    (void)state;
    fill(list, 127, 30); /* 7 + 127 * 32 bytes of 4096 */
    assert_int_equal(quicklist_node_count(list), 1);
    memset(room, 'z', 80);
    quicklist_iter_init(&iter, list, 60, QUICKLIST_FORWARD);
    for (size_t size = 54; size <= 56; size++) { /* one fits, the next does not */
        assert_true(quicklist_iter_next(&iter, &value));
        quicklist_replace(list, &iter, slice_make(room, size));
    }
    quicklist_iter_fini(&iter);
    quicklist_validate(list);
    assert_int_equal(quicklist_count(list), 127);
    assert_int_equal(quicklist_node_count(list), 2);
    quicklist_destroy(&list);
}

static void inserting_in_the_middle_keeps_nodes_full(void **state)
{
    struct quicklist *list = quicklist_create(&(struct quicklist_limits){.fill = 100});
    struct quicklist_iter iter;
    struct listpack_value value;

    (void)state;
    fill(list, 1000, 20);
    for (unsigned i = 0; i < 5000; i++) {
        quicklist_iter_init(&iter, list, 537, QUICKLIST_FORWARD);
        assert_true(quicklist_iter_next(&iter, &value));
        quicklist_insert_before(list, &iter, SLICE("between"));
        quicklist_iter_fini(&iter);
    }
    quicklist_validate(list);
    assert_true(quicklist_node_count(list) <= 6000 / 50 + 1);
    quicklist_destroy(&list);
}

/* --- compression --- */

static void inner_nodes_are_compressed(void **state)
{
    struct quicklist *open = quicklist_create(&(struct quicklist_limits){.fill = -2});
    struct quicklist *list = quicklist_create(&(struct quicklist_limits){.fill = -2, .compress = 2});
    const struct quicklist_node *node;
    struct slice compressed;
    uint32_t index = 0, count;

    (void)state;
    fill(open, 5000, 100);
    fill(list, 5000, 100);
    quicklist_validate(list);
    count = quicklist_node_count(list);
    assert_int_equal(count, quicklist_node_count(open));
    for (node = quicklist_first_node(list); node != NULL; node = quicklist_next_node(list, node), index++) {
        bool is_inner = index >= 2 && index < count - 2;

        assert_int_equal(quicklist_node_compressed(node, &compressed), is_inner);
        if (is_inner)
            assert_true(compressed.size + QUICKLIST_COMPRESS_LEAST_GAIN_BYTES <= quicklist_node_size_bytes(node));
    }
    assert_true(quicklist_memory_bytes(list) < quicklist_memory_bytes(open) / 4);
    quicklist_destroy(&open);
    quicklist_destroy(&list);
}

static void what_gains_nothing_stays_open(void **state)
{
    struct random random = test_random(__func__);
    struct quicklist *list = quicklist_create(&(struct quicklist_limits){.fill = 1, .compress = 1});
    const struct quicklist_node *node;
    struct listpack_value value;
    struct quicklist_iter iter;
    struct slice compressed;

    (void)state;
    fill(list, 5, 35); /* small: 7 + 2 + 35 bytes */
    for (unsigned i = 0; i < 5; i++) {
        for (size_t k = 0; k < 1000; k++)
            room[k] = (char)random_u64(&random);
        quicklist_push(list, QUICKLIST_TAIL, slice_make(room, 1000));
    }
    for (node = quicklist_first_node(list); node != NULL; node = quicklist_next_node(list, node))
        assert_false(quicklist_node_compressed(node, &compressed));
    quicklist_validate(list);
    fill(list, 2, 39); /* 48 bytes: is tried */
    fill(list, 1, 1);
    assert_false(quicklist_node_compressed(quicklist_next_node(list, quicklist_first_node(list)), &compressed));
    quicklist_validate(list);
    memset(room, 'y', 1000); /* with another content it is tried again */
    quicklist_iter_init(&iter, list, 6, QUICKLIST_FORWARD);
    assert_true(quicklist_iter_next(&iter, &value));
    quicklist_replace(list, &iter, slice_make(room, 1000));
    quicklist_iter_fini(&iter);
    node = quicklist_first_node(list);
    for (unsigned i = 0; i < 6; i++)
        node = quicklist_next_node(list, node);
    assert_true(quicklist_node_compressed(node, &compressed));
    quicklist_validate(list);
    quicklist_destroy(&list);
}

/* --- copying, saving, loading --- */

static void a_copy_is_equal_and_apart(void **state)
{
    static const struct quicklist_limits limits = {.fill = 7, .compress = 1, .plain_from_bytes = 500};
    struct random random = test_random(__func__);
    struct quicklist *list = quicklist_create(&limits), *copy;

    (void)state;
    for (unsigned i = 0; i < 300; i++)
        push_one(&random, list);
    for (unsigned i = 0; i < 6; i++) {
        const struct slice text = slice_make(memset(room, 'a', 200), 200);

        quicklist_push(list, QUICKLIST_HEAD, text);
        model_insert(0, text);
    }
    quicklist_drop(list, QUICKLIST_HEAD); /* now the node has room in front */
    model_delete(0, 1);
    copy = quicklist_copy(list);
    check_all(copy);
    assert_int_equal(quicklist_delete_range(list, 3, 250), 250);
    quicklist_destroy(&list);
    check_all(copy);
    for (unsigned i = 0; i < 100; i++)
        change(&random, copy, 600);
    check_all(copy);
    quicklist_destroy(&copy);
    model_clear();
}

static void load_node(struct quicklist *list, const struct quicklist_node *node, struct slice bytes)
{
    struct listpack *pack;

    if (quicklist_node_is_plain(node)) {
        quicklist_push(list, QUICKLIST_TAIL, bytes);
        return;
    }
    assert_true(listpack_check(bytes));
    pack = listpack_from_bytes(bytes);
    quicklist_append_listpack(list, &pack);
    assert_null(pack);
}

/* A list saved under some limits is loaded under others. */
static void nodes_are_loaded_within_other_limits(void **state)
{
    static const struct quicklist_limits rows[] = {{.fill = -2},
                                                   {.fill = 5, .compress = 1},
                                                   {.fill = 50, .compress = 2, .plain_from_bytes = 20},
                                                   {.fill = -5}};
    struct random random = test_random(__func__);
    struct buffer scratch = {0};

    (void)state;
    for (size_t i = 0; i < countof(rows) * countof(rows); i++) {
        struct quicklist *list = quicklist_create(&rows[i / countof(rows)]);
        struct quicklist *loaded = quicklist_create(&rows[i % countof(rows)]);
        struct listpack *empty = listpack_create();

        for (unsigned k = 0; k < 400; k++)
            push_one(&random, list);
        quicklist_append_listpack(loaded, &empty);
        assert_null(empty);
        assert_int_equal(quicklist_node_count(loaded), 0);
        for (const struct quicklist_node *node = quicklist_first_node(list); node != NULL;
             node = quicklist_next_node(list, node)) {
            struct slice bytes = quicklist_node_bytes(node, &scratch);

            assert_int_equal(bytes.size, quicklist_node_size_bytes(node));
            load_node(loaded, node, bytes);
        }
        check_all(loaded);
        quicklist_destroy(&list);
        quicklist_destroy(&loaded);
        model_clear();
    }
    buffer_fini(&scratch);
}

static void small_loaded_nodes_are_joined(void **state)
{
    struct quicklist *list = quicklist_create(&(struct quicklist_limits){.fill = 100, .compress = 1});

    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        struct listpack *pack = listpack_create();

        listpack_append_int(&pack, i);
        quicklist_append_listpack(list, &pack);
    }
    assert_int_equal(quicklist_node_count(list), 10);
    assert_int_equal(quicklist_count(list), 1000);
    quicklist_validate(list);
    quicklist_destroy(&list);
}

static void loaded_texts_are_plain_from_the_same_size_on(void **state)
{
    struct quicklist *list = quicklist_create(&(struct quicklist_limits){.fill = -2, .plain_from_bytes = 5});
    struct listpack *pack = listpack_create();

    (void)state;
    listpack_append(&pack, SLICE("four"));
    listpack_append(&pack, SLICE("fives"));
    quicklist_append_listpack(list, &pack);
    assert_int_equal(quicklist_node_count(list), 2);
    assert_false(quicklist_node_is_plain(quicklist_first_node(list)));
    assert_true(quicklist_node_is_plain(quicklist_next_node(list, quicklist_first_node(list))));
    quicklist_destroy(&list);
}

static unsigned relocate_all(struct quicklist **list, uint64_t most, struct mem_mover *mover)
{
    uint64_t position = 0;
    unsigned calls = 0;

    mem_move_everything(true);
    do {
        position = quicklist_relocate(list, position, most, mover);
        calls++;
    } while (position != 0);
    mem_move_everything(false);
    return calls;
}

static const char long_text[150];

static void relocation_reaches_every_block_once(void **state)
{
    static const struct quicklist_limits limits = {.fill = 10, .compress = 1, .plain_from_bytes = 100};

    (void)state;
    for (unsigned count = 0; count < 200; count = count * 2 + 1) {
        struct quicklist *list = quicklist_create(&limits), *old = list;
        struct mem_mover mover = {0};
        unsigned calls;

        for (unsigned i = 0; i < count; i++) {
            struct slice text = i % 30 == 0 ? slice_make(long_text, sizeof(long_text)) : SLICE("short");

            quicklist_push(list, QUICKLIST_TAIL, text);
            model_insert(model.count, text);
        }
        calls = relocate_all(&list, 15, &mover);
        assert_int_equal(mover.moved, 1 + 2 * quicklist_node_count(list));
        assert_true(list != old);
        assert_true(calls <= 2 + count / 10 && calls >= MAX(count / 25, 1U));
        check_all(list);
        assert_int_equal(relocate_all(&list, UINT64_MAX, &mover), 1);
        check_all(list);
        quicklist_destroy(&list);
        model_clear();
    }
}

/* Also from positions that never were begun, and from elements that are gone. */
static void relocation_goes_on_wherever_it_stands(void **state)
{
    static const struct quicklist_limits limits = {.fill = 1};
    struct quicklist *list = quicklist_create(&limits), *copy;
    struct mem_mover mover = {0};

    (void)state;
    for (unsigned i = 0; i < 10; i++)
        quicklist_push(list, QUICKLIST_TAIL, SLICE("x"));
    mem_move_everything(true);
    assert_int_equal(quicklist_relocate(&list, 77, 1, &mover), 0);
    assert_int_equal(mover.moved, 0);
    assert_int_not_equal(quicklist_relocate(&list, 0, 3, &mover), 0);
    copy = quicklist_copy(list);
    assert_int_equal(quicklist_relocate(&copy, 1, 3, &mover), 0);
    quicklist_destroy(&copy);
    quicklist_delete_range(list, 2, 3); /* it stood on the second of these */
    mover.moved = 0;
    assert_int_equal(quicklist_relocate(&list, 1, 100, &mover), 0);
    assert_int_equal(mover.moved, 2 * 5);
    assert_int_not_equal(quicklist_relocate(&list, 0, 6, &mover), 0);
    quicklist_delete_range(list, 0, 7);
    assert_int_equal(quicklist_relocate(&list, 1, 100, &mover), 0);
    mem_move_everything(false);
    quicklist_validate(list);
    quicklist_destroy(&list);
}

static struct slice numbered(char text[16], int number)
{
    return slice_make(text, (size_t)snprintf(text, 16, "e%06d", number));
}

static struct quicklist *list_of_numbered(int count, const struct quicklist_limits *limits)
{
    struct quicklist *list = quicklist_create(limits);
    char text[16];

    for (int i = 0; i < count; i++)
        quicklist_push(list, QUICKLIST_TAIL, numbered(text, i));
    return list;
}

static void what_is_there_may_be_there(void **state)
{
    static const int fills[] = {-1, -5}; /* nodes that have sketches, and larger ones */
    struct random random = test_random(__func__);
    char text[16];

    (void)state;
    for (unsigned k = 0; k < countof(fills); k++) {
        struct quicklist *list = list_of_numbered(3000, &(struct quicklist_limits){.fill = fills[k], .compress = 2});
        unsigned wrong = 0;

        for (int i = 0; i < 3000; i += 1 + (int)random_below(&random, 50)) {
            assert_true(quicklist_may_have(list, QUICKLIST_HEAD, (uint64_t)i + 1, numbered(text, i)));
            assert_true(quicklist_may_have(list, QUICKLIST_TAIL, 3000 - (uint64_t)i, numbered(text, i)));
        }
        for (int i = 0; fills[k] == -1 && i < 1000; i++) {
            wrong += quicklist_may_have(list, QUICKLIST_HEAD, 3000, numbered(text, 3000 + i));
            wrong += quicklist_may_have(list, QUICKLIST_TAIL, 3000, numbered(text, 3000 + i));
        }
        assert_in_range(wrong, 0, 200);                   /* of 2,000 */
        quicklist_push(list, QUICKLIST_HEAD, SLICE("7")); /* as a number */
        assert_true(quicklist_may_have(list, QUICKLIST_HEAD, 10, SLICE("7")));
        quicklist_destroy(&list);
    }
}

static void bytes_tell_what_is_not_there(void **state)
{
    const struct quicklist_limits limits = {.fill = -5}, short_limits = {.fill = -5, .plain_from_bytes = 5};
    struct quicklist *list = list_of_numbered(3000, &limits), *plain = quicklist_create(&short_limits);
    char text[200];

    (void)state;
    assert_false(quicklist_may_have(list, QUICKLIST_HEAD, 3000, SLICE("e003000")));
    assert_false(quicklist_may_have(list, QUICKLIST_HEAD, 3000, SLICE("e00299"))); /* others begin so */
    assert_false(quicklist_may_have(list, QUICKLIST_HEAD, 3000, SLICE("002999")));
    memset(text, 'x', sizeof(text));
    for (unsigned size = 1; size <= sizeof(text); size++) { /* of each kind of head, also plain ones without */
        quicklist_push(list, QUICKLIST_HEAD, slice_make(text, size));
        assert_true(quicklist_may_have(list, QUICKLIST_HEAD, 1, slice_make(text, size)));
        quicklist_push(plain, QUICKLIST_HEAD, slice_make(text, size));
        assert_true(quicklist_may_have(plain, QUICKLIST_HEAD, 1, slice_make(text, size)));
    }
    quicklist_destroy(&list);
    quicklist_destroy(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps_match_the_model),
        cmocka_unit_test(nodes_are_as_full_as_the_limits_allow),
        cmocka_unit_test(nodes_have_the_number_of_elements_asked_for),
        cmocka_unit_test(long_texts_are_alone_and_plain),
        cmocka_unit_test(half_empty_nodes_do_not_add_up),
        cmocka_unit_test(neighbours_are_joined_wherever_one_shrinks),
        cmocka_unit_test(neighbours_of_a_deleted_plain_node_are_joined),
        cmocka_unit_test(a_piece_of_a_split_node_joins_its_neighbour),
        cmocka_unit_test(a_longer_text_does_not_overfill_a_node),
        cmocka_unit_test(inserting_in_the_middle_keeps_nodes_full),
        cmocka_unit_test(inner_nodes_are_compressed),
        cmocka_unit_test(what_gains_nothing_stays_open),
        cmocka_unit_test(a_copy_is_equal_and_apart),
        cmocka_unit_test(nodes_are_loaded_within_other_limits),
        cmocka_unit_test(small_loaded_nodes_are_joined),
        cmocka_unit_test(loaded_texts_are_plain_from_the_same_size_on),
        cmocka_unit_test(relocation_reaches_every_block_once),
        cmocka_unit_test(relocation_goes_on_wherever_it_stands),
        cmocka_unit_test(what_is_there_may_be_there),
        cmocka_unit_test(bytes_tell_what_is_not_there),
    };

    return cmocka_run_group_tests_name("quicklist", tests, NULL, NULL);
}
