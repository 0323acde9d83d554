#include "base/words.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void check(struct slice line, const char *expected)
{
    struct words words = {0};
    struct buffer joined = {0};

    if (!words_split(line, &words)) {
        assert_int_equal(words.count, 0);
        buffer_append_text(&joined, "ERROR");
    }
    for (size_t i = 0; i < words.count; i++) {
        assert_int_equal(words.items[i].data[words.items[i].size], '\0');
        buffer_append_char(&joined, '<');
        buffer_append_slice(&joined, words.items[i]);
        buffer_append_char(&joined, '>');
    }
    assert_string_equal(buffer_text(&joined), expected);
    buffer_fini(&joined);
    words_fini(&words);
}

/* As observed with inline commands of Redis 7.0. */
static void known_answers(void **state)
{
    (void)state;
    check(SLICE(""), "");
    check(SLICE(" \t\v\f\r\n"), "");
    check(SLICE("a b"), "<a><b>");
    check(SLICE("\v\fa\vb\f c"), "<a\vb\f><c>");
    check(SLICE("  a\tb  "), "<a><b>");
    check(SLICE("foo\"bar\""), "<foobar>");
    check(SLICE("\"a\"b"), "ERROR");
    check(SLICE("'a'b"), "ERROR");
    check(SLICE("x \"a"), "ERROR");
    check(SLICE("a\""), "ERROR");
    check(SLICE("\"a\\\""), "ERROR");
    check(SLICE("\"\""), "<>");
    check(SLICE("'' \"\" a"), "<><><a>");
    check(SLICE("\"\\x41\\q\\n\""), "<Aq\n>");
    check(SLICE("\"\\x4\""), "<x4>");
    check(SLICE("\"\\x4g\""), "<x4g>");
    check(SLICE("'a\\nb\\''"), "<a\\nb'>");
    check(SLICE("a\\nb"), "<a\\nb>");
    check(SLICE("\"a b\" 'c \"d'"), "<a b><c \"d>");
    check(SLICE("a\0b"), "<a>");
    check(SLICE("\"a\0b\""), "ERROR");
}

static void quoting_comes_back(void **state)
{
    struct random random = test_random("quoting_comes_back");
    struct words words = {0};
    struct buffer line = {0};

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        char bytes[5][20];
        struct slice given[5];
        size_t count = random_below(&random, 6);

        buffer_clear(&line);
        for (size_t i = 0; i < count; i++) {
            given[i] = slice_make(bytes[i], random_below(&random, sizeof(bytes[i])));
            for (size_t j = 0; j < given[i].size; j++)
                bytes[i][j] = random_below(&random, 2) == 0 ? (char)random_u64(&random) : "\"'\\ \nxab"[j % 8];
            if (words_needs_quote(given[i]))
                words_quote(&line, given[i]);
            else
                buffer_append_slice(&line, given[i]);
            buffer_append_char(&line, ' ');
        }
        assert_true(words_split(buffer_slice(&line), &words));
        assert_int_equal(words.count, count);
        for (size_t i = 0; i < count; i++)
            assert_true(slice_equal(words.items[i], given[i]));
    }
    buffer_fini(&line);
    words_fini(&words);
}

/* Any bytes, in blocks of exactly their size: nothing is read or written beyond. */
static void random_lines(void **state)
{
    struct random random = test_random("random_lines");
    struct words words = {0};

    (void)state;
    for (unsigned round = 0; round < 100000; round++) {
        size_t size = random_below(&random, 12);
        char *line = malloc(size);
        size_t total = 0;

        for (size_t i = 0; i < size; i++)
            line[i] = "\"'\\ x4a\0\t"[random_below(&random, 9)];
        if (words_split(slice_make(line, size), &words)) {
            for (size_t i = 0; i < words.count; i++)
                total += words.items[i].size + 1;
            assert_true(total <= size + 1);
        }
        free(line);
    }
    words_fini(&words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(quoting_comes_back),
        cmocka_unit_test(random_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
