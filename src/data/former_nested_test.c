#include "data/former_nested.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { FORMERS = 3, RUNS = 40, STEPS = 600, TEXTS_MOST = 300, PATH_BYTES = 200, LEVELS = NESTED_DEPTH_MOST + 2 };

/* A former, the copy it is compared with, and what it has given so far, which is put together as a value. */
struct model {
    struct former *former; /* NULL: none */
    struct value then, again;
    bool has_root;
    struct {
        bool is_list;
        uint64_t to_come;
        size_t path_size; /* of the node */
    } levels[LEVELS];
    unsigned depth;
    struct buffer path;
    struct buffer texts; /* of the list at hand, with their sizes */
    uint64_t text_count;
    uint64_t piece; /* elements of the last piece */
};

/* ----------------------------------------------------------------------------------------------------- comparing -- */

struct comparison {
    struct value with;
    struct buffer path;
};

static void compare(const struct nested *node, struct comparison *comparison);

static void compare_child(struct slice name, const struct nested *node, void *context)
{
    struct comparison *comparison = context;
    const size_t size = comparison->path.size;

    if (size != 0)
        buffer_append_char(&comparison->path, '.');
    buffer_append_slice(&comparison->path, name);
    compare(node, comparison);
    buffer_truncate(&comparison->path, size);
}

static void compare(const struct nested *node, struct comparison *comparison)
{
    const struct slice path = buffer_slice(&comparison->path);
    const struct nested *other = nested_find(comparison->with, path.size != 0 ? path : SLICE_EMPTY);

    assert_non_null(other);
    assert_int_equal(nested_kind(node), nested_kind(other));
    assert_int_equal(nested_count(node), nested_count(other));
    if (nested_kind(node) == NESTED_TREE) {
        nested_each(node, compare_child, comparison);
        return;
    }
    for (uint64_t i = 0; i < nested_count(node); i++)
        assert_true(slice_equal(nested_text(node, i), nested_text(other, i)));
}

static void expect_equal(struct value value, struct value with)
{
    struct comparison comparison = {.with = with};

    compare(nested_find(value, SLICE_EMPTY), &comparison);
    buffer_fini(&comparison.path);
}

/* ------------------------------------------------------------------------------------------------ what is given -- */

static void put_given(struct model *model, const struct slice *texts, uint32_t count)
{
    const struct slice path = buffer_slice(&model->path);

    assert_true(nested_put(&model->again, path.size != 0 ? path : SLICE_EMPTY, texts, count, NULL) == (path.size == 0));
}

static void put_given_list(struct model *model)
{
    struct slice *texts = mem_alloc(model->text_count * sizeof(*texts));
    const char *at = model->texts.data;

    for (uint64_t i = 0; i < model->text_count; i++) {
        size_t size;

        memcpy(&size, at, sizeof(size));
        texts[i] = slice_make(at + sizeof(size), size);
        at += sizeof(size) + size;
    }
    put_given(model, texts, (uint32_t)model->text_count);
    mem_free(texts);
}

static void end_levels(struct model *model)
{
    while (model->depth != 0 && model->levels[model->depth - 1].to_come == 0) {
        if (model->levels[model->depth - 1].is_list)
            put_given_list(model);
        model->depth--;
        if (model->depth != 0)
            buffer_truncate(&model->path, model->levels[model->depth - 1].path_size);
    }
}

static void see_item(struct model *model, struct slice text)
{
    assert_true(model->depth != 0 && model->levels[model->depth - 1].is_list);
    model->levels[model->depth - 1].to_come--;
    buffer_append(&model->texts, &text.size, sizeof(text.size));
    buffer_append_slice(&model->texts, text);
    model->text_count++;
}

static void see_level(struct model *model, enum nested_part part, struct slice second)
{
    struct nested_part_head head;

    assert_int_equal(second.size, sizeof(head));
    memcpy(&head, second.data, sizeof(head));
    assert_true(model->depth < LEVELS);
    model->levels[model->depth].is_list = part == NESTED_PART_LIST;
    model->levels[model->depth].to_come = head.count;
    model->levels[model->depth].path_size = model->path.size;
    model->depth++;
    buffer_clear(&model->texts);
    model->text_count = 0;
}

static void see(const struct former_element *element, void *context)
{
    struct model *model = context;

    model->piece++;
    if (element->part == NESTED_PART_ITEM) {
        see_item(model, element->second);
    } else {
        assert_true((element->first.size == 0) == !model->has_root);
        assert_true((model->depth != 0) == model->has_root); /* nothing comes behind the end */
        model->has_root = true;
        if (model->depth != 0) {
            assert_true(!model->levels[model->depth - 1].is_list);
            model->levels[model->depth - 1].to_come--;
            if (model->path.size != 0)
                buffer_append_char(&model->path, '.');
            buffer_append_slice(&model->path, element->first);
        }
        if (element->part != NESTED_PART_TEXT)
            see_level(model, (enum nested_part)element->part, element->second);
        else
            put_given(model, &element->second, 1);
        if (element->part == NESTED_PART_TEXT && model->depth != 0)
            buffer_truncate(&model->path, model->levels[model->depth - 1].path_size);
    }
    end_levels(model);
}

static void begin(struct model *model, struct value value)
{
    assert_true(former_suits(&nested_ops, value));
    *model = (struct model){.then = nested_ops.copy(value), .again = nested_create()};
    model->former = former_create(&nested_ops, value);
    assert_int_equal(model->former->count, nested_ops.free_effort(value));
}

static bool give(struct model *model, struct value value, uint64_t most)
{
    bool more;

    model->piece = 0;
    more = former_give(model->former, value, most, see, model);
    assert_true(model->piece <= most);
    return more;
}

static void forget(struct model *model, bool detach)
{
    if (detach)
        former_detach(model->former);
    former_destroy(&model->former);
    nested_ops.destroy(model->then);
    nested_ops.destroy(model->again);
    buffer_fini(&model->path);
    buffer_fini(&model->texts);
}

static void check_and_forget(struct model *model, bool detach)
{
    assert_int_equal(model->depth, 0);
    expect_equal(model->then, model->again);
    expect_equal(model->again, model->then);
    forget(model, detach);
}

static void give_all(struct model *model, struct value value, uint64_t most)
{
    while (give(model, value, most))
        ;
}

/* ------------------------------------------------------------------------------------------------------- changes -- */

static void put(struct value *value, struct slice path, const struct slice *texts, uint32_t count)
{
    struct value replaced = {.data = value}; /* anything */

    (void)nested_put(value, path, texts, count, &replaced);
    if (replaced.data != NULL) {
        nested_ops.validate(replaced);
        assert_true(nested_ops.free_effort(replaced) >= 64);
        nested_ops.destroy(replaced);
    }
}

static struct slice random_path(struct random *random, char *room)
{
    const unsigned depth = random_below(random, 200) == 0 ? 0 : 1 + (unsigned)random_below(random, 5);
    const unsigned breadth = random_below(random, 4) == 0 ? 400 : 5; /* some nodes have many children */
    size_t size = 0;

    for (unsigned i = 0; i < depth; i++)
        size += (size_t)snprintf(room + size, PATH_BYTES - size, "%sn%u", i != 0 ? "." : "",
                                 (unsigned)random_below(random, i != 0 && i == depth - 1 ? breadth : 5));
    return size != 0 ? slice_make(room, size) : SLICE_EMPTY;
}

static void change(struct value *value, struct random *random)
{
    struct slice texts[TEXTS_MOST];
    char room[PATH_BYTES], numbers[TEXTS_MOST][16];
    uint32_t count = 1 + (uint32_t)random_below(random, random_below(random, 10) == 0 ? TEXTS_MOST : 3);

    for (uint32_t i = 0; i < count; i++)
        texts[i] = slice_make(numbers[i], (size_t)snprintf(numbers[i], sizeof(numbers[i]), "%u",
                                                           (unsigned)random_below(random, 1000000)));
    put(value, random_path(random, room), texts, count);
}

static void change_some(struct value *value, struct random *random, unsigned most)
{
    for (uint64_t count = random_below(random, most); count != 0; count--)
        change(value, random);
}

static void step(struct model *model, struct value *value, struct random *random)
{
    if (model->former == NULL) {
        if (random_below(random, 20) == 0)
            begin(model, *value);
    } else if (random_below(random, 200) == 0) {
        forget(model, true);
    } else if (random_below(random, 3) != 0) {
        if (!give(model, *value, 1 + random_below(random, 60)))
            check_and_forget(model, true);
    }
}

static void run(struct random *random)
{
    struct model models[FORMERS] = {{.former = NULL}};
    struct value value = nested_create();

    change_some(&value, random, random_below(random, 2) == 0 ? 40 : 3000);
    for (unsigned i = 0; i < STEPS; i++) {
        for (unsigned n = 0; n < FORMERS; n++)
            step(&models[n], &value, random);
        change_some(&value, random, i % 100 < 20 ? 1 : 12);
        if (i % 64 == 0)
            nested_ops.validate(value);
    }
    /* Its key has gone: nobody changes it any more, and nobody is detached. */
    for (unsigned n = 0; n < FORMERS; n++) {
        if (models[n].former == NULL)
            continue;
        give_all(&models[n], value, 100);
        check_and_forget(&models[n], false);
    }
    nested_ops.destroy(value);
}

static void gives_what_there_was_while_it_changes(void **state)
{
    struct random random = test_random("former_nested");
    const uint64_t before = mem_used();

    (void)state;
    for (unsigned i = 0; i < RUNS; i++)
        run(&random);
    assert_int_equal(mem_used(), before);
}

/* ------------------------------------------------------------------------------------------------------ extremes -- */

static const struct slice one[] = {SLICE("1")}, two[] = {SLICE("1"), SLICE("2")};

static struct slice deep_path(struct buffer *path, unsigned depth)
{
    buffer_clear(path);
    for (unsigned i = 0; i < depth; i++)
        buffer_printf(path, "%sx%u", i != 0 ? "." : "", i % 3);
    return buffer_slice(path);
}

/* Each step down a piece; behind each the way is cut at another depth, and grows anew. */
static void a_deep_tree_is_cut_while_it_is_given(void **state)
{
    struct value value = nested_create();
    struct buffer path = {0};
    struct model model;

    (void)state;
    put(&value, deep_path(&path, NESTED_DEPTH_MOST), two, 2);
    begin(&model, value);
    for (unsigned i = 0; give(&model, value, 1); i++) {
        put(&value, deep_path(&path, 1 + i * 7 % NESTED_DEPTH_MOST), one, 1);
        put(&value, deep_path(&path, NESTED_DEPTH_MOST), one, 1);
    }
    nested_ops.validate(value);
    check_and_forget(&model, true);
    nested_ops.destroy(value);
    buffer_fini(&path);
}

static void put_many(struct value *value, const char *prefix, unsigned count)
{
    char room[32];

    for (unsigned i = 0; i < count; i++)
        put(value, slice_make(room, (size_t)snprintf(room, sizeof(room), "%s%u", prefix, i)), one, 1);
}

/* It is replaced at once, with no look at what was there, and what was there counts until it is freed. */
static void a_wide_tree_is_left_as_a_whole(void **state)
{
    enum { WIDE = 20000 };
    struct value value = nested_create(), replaced;
    struct model model;
    uint64_t bytes, given = 0;

    (void)state;
    put_many(&value, "w.", WIDE);
    begin(&model, value);
    assert_true(give(&model, value, WIDE / 2));
    bytes = model.former->bytes;
    assert_true(bytes < 4096);
    (void)nested_put(&value, SLICE("w"), two, 2, &replaced);
    assert_null(replaced.data);
    assert_true(model.former->bytes - bytes > WIDE * (uint64_t)64);
    put_many(&value, "w.new", 100);
    while (give(&model, value, 256))
        given += model.piece;
    assert_true(given > WIDE / 2 - 300);
    check_and_forget(&model, true);
    (void)nested_put(&value, SLICE("w"), one, 1, &replaced); /* nobody needs it */
    assert_non_null(replaced.data);
    assert_int_equal(nested_count(nested_find(replaced, SLICE_EMPTY)), 100);
    nested_ops.destroy(replaced);
    nested_ops.destroy(value);
}

/* New children are passed by, and that is work like giving. */
static void new_children_do_not_make_pieces_long(void **state)
{
    struct value value = nested_create();
    unsigned pieces = 1;
    struct model model;

    (void)state;
    put_many(&value, "old", 100);
    begin(&model, value);
    put_many(&value, "", 20000);
    while (give(&model, value, 100))
        pieces++;
    assert_true(pieces > 100);
    check_and_forget(&model, true);
    nested_ops.destroy(value);
}

static void a_long_list_is_given_in_pieces(void **state)
{
    enum { LONG = 20000 };
    struct slice *texts = mem_alloc(LONG * sizeof(*texts));
    char(*room)[16] = mem_alloc(LONG * sizeof(*room));
    struct value value = nested_create();
    struct model model;

    (void)state;
    for (unsigned i = 0; i < LONG; i++)
        texts[i] = slice_make(room[i], (size_t)snprintf(room[i], sizeof(room[i]), "text %u", i));
    put(&value, SLICE("list"), texts, LONG);
    begin(&model, value);
    assert_true(give(&model, value, LONG / 2));
    put(&value, SLICE("list.tree"), one, 1);
    put(&value, SLICE_EMPTY, texts, LONG / 2);
    give_all(&model, value, 256);
    check_and_forget(&model, true);
    begin(&model, value); /* a list is the root */
    assert_true(give(&model, value, 10));
    put(&value, SLICE("a"), one, 1);
    give_all(&model, value, 256);
    check_and_forget(&model, true);
    nested_ops.destroy(value);
    mem_free(texts);
    mem_free(room);
}

static void a_piece_ends_with_long_texts(void **state)
{
    char *text = mem_alloc_zero(FORMER_PIECE_BYTES);
    const struct slice long_text = slice_make(text, FORMER_PIECE_BYTES);
    struct value value = nested_create();
    unsigned pieces = 1;
    struct model model;

    (void)state;
    put(&value, SLICE("a"), &long_text, 1);
    put(&value, SLICE("b"), &long_text, 1);
    put(&value, SLICE("c"), (const struct slice[]){long_text, long_text}, 2);
    begin(&model, value);
    while (give(&model, value, 256))
        pieces++;
    assert_int_equal(pieces, 5); /* the last one has nothing to give any more */
    check_and_forget(&model, true);
    nested_ops.destroy(value);
    mem_free(text);
}

/* What is changed in the way of the walk is kept, and what is changed behind it is not. */
static void keeps_only_what_is_to_come(void **state)
{
    struct value value = nested_create();
    struct model model;
    uint64_t bytes;

    (void)state;
    put_many(&value, "", 2000);
    put_many(&value, "tree.", 2000);
    begin(&model, value);
    bytes = model.former->bytes;
    put_many(&value, "tree.", 2000);
    assert_true(model.former->bytes > bytes + 2000 * (uint64_t)40);
    put_many(&value, "tree.new", 2000);
    for (uint64_t before = 0; before != model.former->bytes;) { /* again and again */
        before = model.former->bytes;
        put_many(&value, "tree.", 2000);
    }
    while (give(&model, value, 3000))
        ;
    assert_true(model.former->bytes < bytes + 4096);
    bytes = model.former->bytes;
    put_many(&value, "tree.", 2000);
    put_many(&value, "", 2000);
    put(&value, SLICE("tree"), one, 1);
    assert_int_equal(model.former->bytes, bytes);
    check_and_forget(&model, true);
    nested_ops.destroy(value);
}

static int setup(void **state)
{
    (void)state;
    hash_setup();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_what_there_was_while_it_changes),
        cmocka_unit_test(a_deep_tree_is_cut_while_it_is_given),
        cmocka_unit_test(a_wide_tree_is_left_as_a_whole),
        cmocka_unit_test(new_children_do_not_make_pieces_long),
        cmocka_unit_test(a_long_list_is_given_in_pieces),
        cmocka_unit_test(a_piece_ends_with_long_texts),
        cmocka_unit_test(keeps_only_what_is_to_come),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
