#include "base/glob.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/test_seed.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool matches(const char *pattern, const char *text)
{
    return glob_match(slice_from_text(pattern), slice_from_text(text), false);
}

static void known_answers(void **state)
{
    static const struct {
        const char *pattern;
        const char *text;
        bool is_match;
    } rows[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"**", "abc", true},
        {"a*c", "abbbc", true},
        {"a*c", "abbb", false},
        {"?", "", false},
        {"?", "a", true},
        {"??", "a", false},
        {"a?c", "abc", true},
        {"[abc]", "b", true},
        {"[abc]", "d", false},
        {"[^abc]", "d", true},
        {"[^abc]", "a", false},
        {"[a-c]x", "bx", true},
        {"[c-a]x", "bx", true},
        {"[a-]", "a", true},
        {"[\\]]", "]", true},
        {"[a\\-z]", "-", true},
        {"[a\\-z]", "b", false},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"a\\", "a\\", true},
        {"[abc", "c", true},
        {"[", "a", false},
        {"[]", "a", false},
        {"[^]", "a", true},
        {"[^a]", "^", true},
        {"h[^e]llo", "hello", false},
        {"h[^e]llo", "hallo", true},
        {"*a*b*c*", "xxaxxbxxcxx", true},
        {"*a*b*c*", "xxaxxcxxbxx", false},
        {"[a]*z", "abz", true},
        {"x*[0-9]", "xabc5", true},
        {"x*[0-9]", "xabc", false},
    };

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        if (matches(rows[i].pattern, rows[i].text) != rows[i].is_match)
            fail_msg("pattern %s text %s", rows[i].pattern, rows[i].text);
    }
}

static void case_folding(void **state)
{
    (void)state;
    assert_true(glob_match(SLICE("MAX*"), SLICE("maxmemory"), true));
    assert_true(glob_match(SLICE("[A-C]\\D"), SLICE("bd"), true));
    assert_false(glob_match(SLICE("MAX*"), SLICE("maxmemory"), false));
}

/* The definition, spelled out with recursion: for small patterns of plain bytes, ? and *. */
static bool model(const char *pattern, const char *text)
{
    if (*pattern == '\0')
        return *text == '\0';
    if (*pattern == '*')
        return model(pattern + 1, text) || (*text != '\0' && model(pattern, text + 1));
    return *text != '\0' && (*pattern == '?' || *pattern == *text) && model(pattern + 1, text + 1);
}

static void agrees_with_the_definition(void **state)
{
    struct random random = test_random("agrees_with_the_definition");

    (void)state;
    for (unsigned round = 0; round < 200000; round++) {
        char pattern[9] = {0}, text[9] = {0};

        for (uint64_t i = random_below(&random, 8), at = 0; at < i; at++)
            pattern[at] = "ab?*"[random_below(&random, 4)];
        for (uint64_t i = random_below(&random, 8), at = 0; at < i; at++)
            text[at] = "ab"[random_below(&random, 2)];
        if (matches(pattern, text) != model(pattern, text))
            fail_msg("pattern %s text %s", pattern, text);
    }
}

/* Any bytes at all: no crash, nothing read beyond the ends (the address sanitizer looks on). */
static void random_bytes(void **state)
{
    struct random random = test_random("random_bytes");

    (void)state;
    for (unsigned round = 0; round < 100000; round++) {
        size_t pattern_size = random_below(&random, 10), text_size = random_below(&random, 6);
        char *pattern = malloc(pattern_size), *text = malloc(text_size);

        for (size_t i = 0; i < pattern_size; i++)
            pattern[i] = "[]^-\\*?ab\0"[random_below(&random, 10)];
        for (size_t i = 0; i < text_size; i++)
            text[i] = "ab-]^\\"[random_below(&random, 6)];
        (void)glob_match(slice_make(pattern, pattern_size), slice_make(text, text_size), round % 2 == 0);
        free(pattern);
        free(text);
    }
}

static void many_stars_are_not_slow(void **state)
{
    static char pattern[20001], text[50000];
    uint64_t begin_ms = clock_monotonic_ms();

    (void)state;
    for (size_t i = 0; i < 20000; i += 2)
        memcpy(pattern + i, "*a", 2);
    pattern[20000] = 'b';
    memset(text, 'a', sizeof(text));
    assert_false(glob_match(slice_make(pattern, sizeof(pattern)), slice_make(text, sizeof(text)), false));
    assert_false(glob_match(SLICE("*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"), slice_make(text, sizeof(text)), false));
    assert_true(clock_monotonic_ms() - begin_ms < 5000);
}

static void wildcards_are_seen(void **state)
{
    (void)state;
    assert_false(glob_has_wildcard(SLICE("abc]^-")));
    assert_true(glob_has_wildcard(SLICE("a*")));
    assert_true(glob_has_wildcard(SLICE("a?")));
    assert_true(glob_has_wildcard(SLICE("[")));
    assert_true(glob_has_wildcard(SLICE("\\")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(case_folding),
        cmocka_unit_test(agrees_with_the_definition),
        cmocka_unit_test(random_bytes),
        cmocka_unit_test(many_stars_are_not_slow),
        cmocka_unit_test(wildcards_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
