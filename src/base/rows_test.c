#include "base/rows.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { COLOR_RED = 1, COLOR_BLUE = 2, COLOR_GREEN = 4 };

static const struct option_enum colors[] = {{"none", 0},          {"red", COLOR_RED},     {"rouge", COLOR_RED},
                                            {"blue", COLOR_BLUE}, {"green", COLOR_GREEN}, {NULL, 0}};

static _Atomic int64_t flag, count, limit, size, share, mode, color, palette;
static struct option_string title, secret;
static char special[100];

static const char *check_title(const struct option_row *row, int64_t number, struct slice text)
{
    assert_string_equal(row->name, "title");
    assert_int_equal(number, 0);
    return memchr(text.data, '/', text.size) == NULL ? NULL : "title can't be a path";
}

static bool set_special(const struct option_row *row, const struct slice *words, size_t word_count, char *error,
                        size_t error_size)
{
    size_t used = 0;

    (void)row;
    for (size_t i = 0; i < word_count; i++) {
        if (slice_equal_text(words[i], "bad")) {
            snprintf(error, error_size, "bad word");
            return false;
        }
    }
    for (size_t i = 0; i < word_count; i++)
        used += (size_t)snprintf(special + used, sizeof(special) - used, "%s%.*s", i == 0 ? "" : " ",
                                 (int)words[i].size, words[i].data);
    special[used] = '\0';
    return true;
}

static void get_special(const struct option_row *row, struct buffer *buffer)
{
    (void)row;
    buffer_append_text(buffer, special);
}

static const struct option_row rows[] = {
    ROW_BOOL("flag", &flag, 1, OPTION_MUTABLE, "a flag", .alias = "old-flag"),
    ROW_INT("count", &count, -5, -10, 500, OPTION_MUTABLE, "a count"),
    ROW_UINT("limit", &limit, 7, 1, UINT64_MAX, OPTION_MUTABLE, "a limit"),
    ROW_MEMORY("size", &size, 1024 * 1024, 1000, UINT64_MAX, OPTION_MUTABLE, "a size"),
    ROW_PERCENT_OR_MEMORY("share", &share, 0, -100, INT64_MAX, OPTION_MUTABLE, "a share"),
    ROW_OCTAL("mode", &mode, 0, 0, 0777, OPTION_IMMUTABLE, "a mode"),
    ROW_ENUM("color", &color, COLOR_RED, colors, OPTION_MUTABLE, "a color"),
    ROW_ENUM("palette", &palette, 0, colors, OPTION_MUTABLE | OPTION_MULTI_ARG | OPTION_MULTI_ENUM, "colors"),
    ROW_STRING("title", &title, "untitled", OPTION_MUTABLE, "a title", .check = check_title),
    ROW_STRING("secret", &secret, NULL, OPTION_MUTABLE | OPTION_SENSITIVE | OPTION_EMPTY_IS_NULL, "a secret"),
    ROW_SPECIAL("special", set_special, get_special, "1 2", OPTION_MUTABLE | OPTION_MULTI_ARG, "special words"),
};

static const struct option_row *row_named(const char *name)
{
    for (size_t i = 0; i < countof(rows); i++) {
        if (option_is_named(&rows[i], slice_from_text(name)))
            return &rows[i];
    }
    fail_msg("no row %s", name);
    return NULL;
}

static int set_presets(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(rows); i++)
        option_set_preset(&rows[i]);
    return 0;
}

static int free_strings(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(rows); i++)
        option_fini(&rows[i]);
    return 0;
}

/* Returns the error, or the option's text after it was stored. */
static const char *set(const char *name, const char *text)
{
    static char answer[OPTION_ERROR_SPACE];
    const struct option_row *row = row_named(name);
    struct option_value value;
    struct buffer buffer = {0};
    struct slice word = slice_from_text(text);

    if (!option_parse(row, &word, 1, &value, answer, sizeof(answer)))
        return answer;
    if (option_store(row, &value, answer, sizeof(answer)) == OPTION_FAILED) {
        option_value_release(&value);
        return answer;
    }
    option_value_release(&value);
    option_format(row, &buffer);
    snprintf(answer, sizeof(answer), "%s", buffer_text(&buffer));
    buffer_fini(&buffer);
    return answer;
}

static void parse_and_print(void **state)
{
    static const struct {
        const char *name, *text, *answer;
    } cases[] = {
        {"flag", "no", "no"},
        {"FLAG", "YES", "yes"},
        {"old-flag", "maybe", "argument must be 'yes' or 'no'"},
        {"flag", "", "argument must be 'yes' or 'no'"},
        {"count", "-10", "-10"},
        {"count", "500", "500"},
        {"count", "501", "argument must be between -10 and 500 inclusive"},
        {"count", "-11", "argument must be between -10 and 500 inclusive"},
        {"count", "07", "argument couldn't be parsed into an integer"},
        {"count", "", "argument couldn't be parsed into an integer"},
        {"limit", "18446744073709551615", "18446744073709551615"},
        {"limit", "1", "1"},
        {"limit", "0", "argument must be between 1 and 18446744073709551615 inclusive"},
        {"limit", "-1", "argument must be between 1 and 18446744073709551615 inclusive"},
        {"limit", "x", "argument couldn't be parsed into an integer"},
        {"size", "1kb", "1024"},
        {"size", "2GB", "2147483648"},
        {"size", "-1", "argument must be a memory value"},
        {"size", "999", "argument must be between 1000 and 18446744073709551615 inclusive"},
        {"size", "5 kb", "argument must be a memory value"},
        {"share", "50%", "50%"},
        {"share", "100%", "100%"},
        {"share", "0%", "0"},
        {"share", "5mb", "5242880"},
        {"share", "101%", "percentage argument must be less or equal to 100"},
        {"share", "%", "argument must be a memory or percent value"},
        {"share", "-5", "argument must be a memory or percent value"},
        {"mode", "755", "755"},
        {"mode", "0", "0"},
        {"mode", "888", "argument couldn't be parsed as an octal number"},
        {"mode", "", "argument couldn't be parsed as an octal number"},
        {"mode", "1000", "argument must be between 0 and 777 inclusive"},
        {"color", "rouge", "red"},
        {"color", "BLUE", "blue"},
        {"color", "black", "argument(s) must be one of the following: none, red, rouge, blue, green"},
        {"color", "red blue", "argument(s) must be one of the following: none, red, rouge, blue, green"},
        {"palette", "green blue", "blue green"},
        {"palette", "red", "red"},
        {"palette", "none", "none"},
        {"palette", "", "argument(s) must be one of the following: none, red, rouge, blue, green"},
        {"palette", "red black", "argument(s) must be one of the following: none, red, rouge, blue, green"},
        {"title", "a b", "a b"},
        {"title", "", ""},
        {"title", "a/b", "title can't be a path"},
        {"secret", "x", "x"},
        {"secret", "", ""},
        {"special", "a  b 'c'", "a b c"},
        {"special", "a bad b", "bad word"},
        {"special", "", ""},
        {"special", "\"a", "unbalanced quotes"},
    };

    (void)state;
    for (size_t i = 0; i < countof(cases); i++)
        assert_string_equal(set(cases[i].name, cases[i].text), cases[i].answer);
    assert_null(secret.data);
    assert_non_null(title.data);
}

static void several_words(void **state)
{
    const struct slice words[] = {SLICE("red"), SLICE("green")};
    struct option_value value;
    char error[OPTION_ERROR_SPACE];

    (void)state;
    assert_false(option_parse(row_named("color"), words, 2, &value, error, sizeof(error)));
    assert_string_equal(error, "wrong number of arguments");
    assert_false(option_parse(row_named("count"), words, 0, &value, error, sizeof(error)));
    assert_true(option_parse(row_named("palette"), words, 2, &value, error, sizeof(error)));
    assert_int_equal(value.number, COLOR_RED | COLOR_GREEN);
    option_value_release(&value);
}

static void presets(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(rows); i++)
        assert_true(option_is_preset(&rows[i]));
    assert_true(OPTION_IS(flag));
    assert_int_equal(OPTION_GET(count), -5);
    assert_int_equal(OPTION_GET_U64(size), 1024 * 1024);
    assert_string_equal(title.data, "untitled");
    assert_null(secret.data);
    assert_string_equal(special, "1 2");
    set("title", "");
    set("special", "1");
    set("secret", "x");
    set("color", "blue");
    assert_false(option_is_preset(row_named("title")));
    assert_false(option_is_preset(row_named("special")));
    assert_false(option_is_preset(row_named("secret")));
    assert_false(option_is_preset(row_named("color")));
}

/* Storing gives the old value back: storing that undoes it, for every type. */
static void storing_twice_undoes(void **state)
{
    static const char *const texts[] = {"no", "3", "9", "5mb", "10%", "644", "green", "red blue", "x y", "z", "7 8 9"};
    char error[OPTION_ERROR_SPACE];

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        struct slice word = slice_from_text(texts[i]);
        struct option_value value;

        assert_true(option_parse(&rows[i], &word, 1, &value, error, sizeof(error)));
        assert_int_equal(option_store(&rows[i], &value, error, sizeof(error)), OPTION_CHANGED);
        assert_false(option_is_preset(&rows[i]));
        assert_int_equal(option_store(&rows[i], &value, error, sizeof(error)), OPTION_CHANGED);
        assert_true(option_is_preset(&rows[i]));
        option_value_release(&value);
        assert_true(option_parse(&rows[i], &word, 1, &value, error, sizeof(error)));
        assert_int_equal(option_store(&rows[i], &value, error, sizeof(error)), OPTION_CHANGED);
        option_value_release(&value);
        assert_true(option_parse(&rows[i], &word, 1, &value, error, sizeof(error)));
        assert_int_equal(option_store(&rows[i], &value, error, sizeof(error)), OPTION_SAME);
        option_value_release(&value);
    }
}

static void lines_of_rewrite(void **state)
{
    struct buffer buffer = {0};

    (void)state;
    set("title", "a \"b\"");
    set("palette", "red green");
    for (size_t i = 0; i < countof(rows); i++)
        option_rewrite(&rows[i], &buffer);
    assert_string_equal(buffer_text(&buffer), "flag yes\ncount -5\nlimit 7\nsize 1mb\nshare 0\nmode 0\ncolor red\n"
                                              "palette red green\ntitle \"a \\\"b\\\"\"\nsecret \"\"\nspecial 1 2\n");
    buffer_fini(&buffer);
}

#define ROWS_TEST(name) cmocka_unit_test_setup_teardown(name, set_presets, free_strings)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROWS_TEST(parse_and_print),      ROWS_TEST(several_words),    ROWS_TEST(presets),
        ROWS_TEST(storing_twice_undoes), ROWS_TEST(lines_of_rewrite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
