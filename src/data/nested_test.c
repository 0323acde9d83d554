#include "data/nested.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void paths_have_no_empty_component_and_an_end(void **state)
{
    static const char *const empty[] = {"", ".", "a.", ".a", "a..b", "a.b."};
    struct buffer deep = {0};
    struct slice path = SLICE("ab.c.def");

    (void)state;
    for (size_t i = 0; i < countof(empty); i++)
        assert_int_equal(nested_path_check(slice_from_text(empty[i])), NESTED_PATH_EMPTY_COMPONENT);
    assert_int_equal(nested_path_check(SLICE("a")), NESTED_PATH_GOOD);
    assert_int_equal(nested_path_check(path), NESTED_PATH_GOOD);
    assert_true(slice_equal(nested_path_step(&path), SLICE("ab")));
    assert_true(slice_equal(nested_path_step(&path), SLICE("c")));
    assert_non_null(path.data);
    assert_true(slice_equal(nested_path_step(&path), SLICE("def")));
    assert_null(path.data);
    for (unsigned i = 1; i < NESTED_DEPTH_MOST; i++)
        buffer_append_text(&deep, "x.");
    buffer_append_char(&deep, 'y');
    assert_int_equal(nested_path_check(buffer_slice(&deep)), NESTED_PATH_GOOD);
    buffer_append_text(&deep, ".z");
    assert_int_equal(nested_path_check(buffer_slice(&deep)), NESTED_PATH_TOO_DEEP);
    buffer_fini(&deep);
}

static void expect_json(struct value root, const char *path, const char *json)
{
    const struct nested *node = nested_find(root, path != NULL ? slice_from_text(path) : SLICE_EMPTY);
    struct buffer text = {0};

    assert_non_null(node);
    nested_append_json(node, &text);
    assert_string_equal(buffer_text(&text), json);
    buffer_fini(&text);
}

static void what_is_in_the_way_goes(void **state)
{
    const struct slice one[] = {SLICE("1")}, three[] = {SLICE("x"), SLICE(""), SLICE("\"\\\n\x01z\xC3")};
    struct value root = nested_create(), other;

    (void)state;
    assert_false(nested_put(&root, SLICE("a.b"), one, 1, NULL));
    assert_true(nested_put(&root, SLICE("a.b"), three, 3, NULL));
    expect_json(root, NULL, "{\"a\" : {\"b\" : [\"x\",\"\",\"\\\"\\\\\\u000a\\u0001z\xC3\"]}}");
    assert_false(nested_put(&root, SLICE("a.b.c"), one, 1, NULL));
    expect_json(root, "a", "{\"b\" : {\"c\" : \"1\"}}");
    assert_null(nested_find(root, SLICE("a.b.c.d")));
    assert_null(nested_find(root, SLICE("a.c")));
    other = nested_ops.copy(root);
    assert_true(nested_put(&root, SLICE("a"), one, 1, NULL));
    expect_json(root, NULL, "{\"a\" : \"1\"}");
    expect_json(other, "a.b.c", "\"1\"");
    assert_true(nested_put(&root, SLICE_EMPTY, three, 2, NULL));
    expect_json(root, NULL, "[\"x\",\"\"]");
    assert_int_equal(nested_count(nested_find(root, SLICE_EMPTY)), 2);
    assert_false(nested_put(&root, SLICE("q"), one, 1, NULL));
    expect_json(root, NULL, "{\"q\" : \"1\"}");
    nested_ops.destroy(root);
    nested_ops.destroy(other);
}

/* The model: paths a.b.c of three components out of a few names, each of which has a number. */
enum { NAMES = 7, PATHS = NAMES * NAMES * NAMES };

static void count_texts(struct slice name, const struct nested *node, void *context)
{
    unsigned *count = context;

    (void)name;
    if (nested_kind(node) == NESTED_TREE)
        nested_each(node, count_texts, context);
    else
        (*count)++;
}

static void behaves_like_a_map_of_paths(void **state)
{
    struct random random = test_random("nested");
    struct value root = nested_create();
    unsigned numbers[PATHS] = {0}, count = 0, found = 0;

    (void)state;
    for (unsigned step = 1; step < 5000; step++) {
        unsigned i = (unsigned)random_below(&random, PATHS);
        char path[32], number[16];
        struct slice path_text = slice_make(path, (size_t)sprintf(path, "n%u.%u.long:name:%u", i % NAMES,
                                                                  i / NAMES % NAMES, i / NAMES / NAMES));
        struct slice value = slice_make(number, (size_t)sprintf(number, "%u", step));
        const struct nested *node = nested_find(root, path_text);

        assert_int_equal(node != NULL, numbers[i] != 0);
        if (node != NULL)
            assert_int_equal(strtoul(nested_text(node, 0).data, NULL, 10), numbers[i]);
        assert_int_equal(nested_put(&root, path_text, &value, 1, NULL), numbers[i] != 0);
        count += numbers[i] == 0;
        numbers[i] = step;
    }
    nested_each(root.data, count_texts, &found);
    assert_int_equal(found, count);
    assert_true(nested_ops.free_effort(root) > count);
    assert_true(nested_ops.memory_bytes(root, 0) > count * 16);
    nested_ops.destroy(root);
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
        cmocka_unit_test(paths_have_no_empty_component_and_an_end),
        cmocka_unit_test(what_is_in_the_way_goes),
        cmocka_unit_test(behaves_like_a_map_of_paths),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
