#include "persist/aof_manifest.h"
#include "base/test_seed.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define FORMAT "Invalid AOF manifest file format"

/* `expected`: the manifest printed, or "LINE: the problem". */
static void check(struct slice text, const char *expected)
{
    struct aof_manifest manifest;
    struct aof_manifest_problem problem;
    struct buffer got = {0};

    if (aof_manifest_parse(&manifest, text, &problem) == STATUS_OK) {
        assert_null(problem.text);
        aof_manifest_print(&manifest, &got);
    } else {
        assert_int_equal(manifest.count, 0);
        assert_null(manifest.items);
        buffer_printf(&got, "%u: %s", problem.line, problem.text);
    }
    assert_string_equal(buffer_text(&got), expected);
    buffer_fini(&got);
    aof_manifest_fini(&manifest);
}

static void check_line_of(size_t name_bytes, bool good)
{
    struct buffer text = {0}, expected = {0};

    buffer_append_text(&text, "file ");
    for (size_t i = 0; i < name_bytes; i++)
        buffer_append_char(&text, 'a');
    buffer_append_text(&text, " seq 1 type b\n");
    if (good)
        buffer_append_slice(&expected, buffer_slice(&text));
    else
        buffer_append_text(&expected, "1: The AOF manifest file contains too long line");
    check(buffer_slice(&text), buffer_text(&expected));
    buffer_fini(&text);
    buffer_fini(&expected);
}

static void what_is_accepted(void **state)
{
    (void)state;
    check(SLICE("file a seq 1 type b\n"), "file a seq 1 type b\n");
    check(SLICE("FILE a SEQ 7 TYPE i\n"), "file a seq 7 type i\n");
    check(SLICE("type b seq 1 file a\n"), "file a seq 1 type b\n");
    check(SLICE("file a seq 1 type b foo bar\n"), "file a seq 1 type b\n");
    check(SLICE("  file a seq 1 type b  \n"), "file a seq 1 type b\n");
    check(SLICE("file a seq 1 type b\r\n"), "file a seq 1 type b\n");
    check(SLICE("file \"a b\" seq 1 type b\n"), "file \"a b\" seq 1 type b\n");
    check(SLICE("file \"a\\nb\" seq 1 type b\n"), "file \"a\\nb\" seq 1 type b\n");
    check(SLICE("# words\nfile a seq 1 type h\n#"), "file a seq 1 type h\n");
    check(SLICE("#\n"), "");
    check(SLICE("file a seq 1 type i\nfile b seq 2 type h\nfile c seq 9 type i\nfile d seq 3 type b\n"),
          "file d seq 3 type b\nfile b seq 2 type h\nfile a seq 1 type i\nfile c seq 9 type i\n");
    check_line_of(1023 - sizeof("file  seq 1 type b") + 1, true);
    check_line_of(1024 - sizeof("file  seq 1 type b") + 1, false);
}

static void what_is_refused(void **state)
{
    (void)state;
    check(SLICE(""), "0: Found an empty AOF manifest");
    check(SLICE("\n"), "1: " FORMAT);
    check(SLICE("file a seq 1 type i\n\n"), "2: " FORMAT);
    check(SLICE(" #\n"), "1: " FORMAT);
    check(SLICE("file a seq 1\n"), "1: " FORMAT);
    check(SLICE("file a seq 1 type b foo\n"), "1: " FORMAT);
    check(SLICE("a b c d e f\n"), "1: " FORMAT);
    check(SLICE("file a seq 0 type b\n"), "1: " FORMAT);
    check(SLICE("file a seq -1 type b\n"), "1: " FORMAT);
    check(SLICE("file a seq 1x type b\n"), "1: " FORMAT);
    check(SLICE("file a seq 18446744073709551615 type b\n"), "1: " FORMAT);
    check(SLICE("file \"a seq 1 type b\n"), "1: " FORMAT);
    check(SLICE("file a\0b seq 1 type b\n"), "1: " FORMAT);
    check(SLICE("file a seq 1 type b\n\0"), "2: The AOF manifest file contains too long line");
    check(SLICE("file a seq 1 type b"), "1: The AOF manifest file contains too long line");
    check(SLICE("file a seq 1 type x\n"), "1: Unknown AOF file type");
    check(SLICE("file a seq 1 type B\n"), "1: Unknown AOF file type");
    check(SLICE("file a seq 1 type ''\n"), "1: Unknown AOF file type");
    check(SLICE("file a/b seq 1 type b\n"), "1: File can't be a path, just a filename");
    check(SLICE("file .. seq 1 type b\n"), "1: File can't be a path, just a filename");
    check(SLICE("file \"\" seq 1 type b\n"), "1: File can't be a path, just a filename");
    check(SLICE("file \"a\\x00\" seq 1 type b\n"), "1: File can't be a path, just a filename");
    check(SLICE("#\nfile a seq 1 type i\nfile b seq 1 type i\n"), "3: Found a non-monotonic sequence number");
    check(SLICE("file a seq 1 type b\nfile b seq 2 type b\n"), "2: Found duplicate base file information");
}

static void check_is(const struct aof_manifest *manifest, const char *expected)
{
    struct buffer text = {0};

    aof_manifest_print(manifest, &text);
    assert_string_equal(buffer_text(&text), expected);
    buffer_fini(&text);
}

/* A life: taken over from a single file, rewritten twice, the second time with two increments at once. */
static void how_it_changes(void **state)
{
    struct aof_manifest manifest = {0}, copy = {0};
    const struct aof_part *first;
    char *name;

    (void)state;
    assert_null(aof_manifest_base(&manifest));
    assert_null(aof_manifest_last_increment(&manifest));
    aof_manifest_adopt_base(&manifest, SLICE("x.aof"));
    aof_manifest_add_increment(&manifest, "x.aof");
    check_is(&manifest, "file x.aof seq 1 type b\nfile x.aof.1.incr.aof seq 1 type i\n");

    first = aof_manifest_add_increment(&manifest, "x.aof");
    name = aof_manifest_next_base_name(&manifest, "x.aof", true);
    assert_string_equal(name, "x.aof.2.base.rdb");
    mem_free(name);
    assert_string_equal(aof_manifest_replace_base(&manifest, "x.aof", true, first)->name, "x.aof.2.base.rdb");
    check_is(&manifest, "file x.aof.2.base.rdb seq 2 type b\nfile x.aof.1.incr.aof seq 1 type h\n"
                        "file x.aof seq 1 type h\nfile x.aof.2.incr.aof seq 2 type i\n");
    assert_int_equal(aof_manifest_count(&manifest, AOF_HISTORY), 2);
    aof_manifest_drop_history(&manifest);
    check_is(&manifest, "file x.aof.2.base.rdb seq 2 type b\nfile x.aof.2.incr.aof seq 2 type i\n");

    aof_manifest_add_increment(&manifest, "x.aof");
    aof_manifest_replace_base(&manifest, "x.aof", false, NULL);
    aof_manifest_copy(&copy, &manifest);
    aof_manifest_fini(&manifest);
    check_is(&manifest, "");
    assert_int_equal(aof_manifest_count(&copy, AOF_HISTORY), 3);
    assert_null(aof_manifest_last_increment(&copy));
    assert_int_equal(aof_manifest_add_increment(&copy, "x.aof")->sequence, 4); /* not the number of the removed one */
    aof_manifest_drop_history(&copy);
    check_is(&copy, "file x.aof.3.base.aof seq 3 type b\nfile x.aof.4.incr.aof seq 4 type i\n");

    /* History is told from the latest on; a base that is history has no say in the numbers of increments. */
    aof_manifest_replace_base(&copy, "x.aof", true, aof_manifest_add_increment(&copy, "x.aof"));
    aof_manifest_replace_base(&copy, "x.aof", true, NULL);
    check_is(&copy, "file x.aof.5.base.rdb seq 5 type b\nfile x.aof.5.incr.aof seq 5 type h\n"
                    "file x.aof.4.base.rdb seq 4 type h\nfile x.aof.4.incr.aof seq 4 type h\n"
                    "file x.aof.3.base.aof seq 3 type h\n");
    aof_manifest_drop_history(&copy);
    aof_manifest_replace_base(&copy, "x.aof", true, NULL);
    aof_manifest_add_increment(&copy, "x.aof");
    check_is(&copy, "file x.aof.6.base.rdb seq 6 type b\nfile x.aof.5.base.rdb seq 5 type h\n"
                    "file x.aof.1.incr.aof seq 1 type i\n");
    aof_manifest_fini(&copy);
}

/* Damaged in any way it is refused or understood: never anything else. */
static void damaged(void **state)
{
    static const char whole[] = "#\nfile a.1.base.rdb seq 1 type b\nfile \"a 1\" seq 1 type h\nfile a seq 2 type i\n";
    char text[sizeof(whole)];
    struct random random = test_random("damaged");

    (void)state;
    for (unsigned round = 0; round < 50000; round++) {
        struct aof_manifest manifest;
        struct aof_manifest_problem problem;
        size_t size = sizeof(whole) - 1 - (round % 4 == 0 ? (size_t)random_below(&random, sizeof(whole)) : 0);

        memcpy(text, whole, sizeof(whole));
        for (unsigned i = 0; i < round % 3; i++)
            text[random_below(&random, sizeof(whole) - 1)] = (char)random_below(&random, 256);
        if (aof_manifest_parse(&manifest, slice_make(text, MIN(size, sizeof(whole) - 1)), &problem) == STATUS_OK) {
            for (uint32_t i = 0; i < manifest.count; i++)
                assert_null(strchr(manifest.items[i].name, '/'));
        } else {
            assert_non_null(problem.text);
        }
        aof_manifest_fini(&manifest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_accepted),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(how_it_changes),
        cmocka_unit_test(damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
