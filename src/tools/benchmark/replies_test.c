#include "tools/benchmark/replies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Gives the input in pieces of `step` bytes; tells the results as letters: g(ood), e(rror), b(roken). */
static void take(const char *text, size_t size, size_t step, char *letters)
{
    struct replies replies = {0};

    for (size_t at = 0; at < size; at += step) {
        struct slice input = slice_make(text + at, MIN(step, size - at));

        while (input.size != 0) {
            const enum replies_result result = replies_next(&replies, &input);

            if (result == REPLIES_BROKEN) {
                *letters++ = 'b';
                at = size;
                break;
            }
            if (result != REPLIES_MORE)
                *letters++ = result == REPLIES_GOOD ? 'g' : 'e';
        }
    }
    *letters++ = replies.values == 0 ? '.' : '?';
    *letters = '\0';
}

static void expect(const char *text, const char *expected)
{
    char letters[100];

    for (size_t step = 1; step <= strlen(text); step++) {
        take(text, strlen(text), step, letters);
        assert_string_equal(letters, expected);
    }
}

static void each_form_ends_where_it_ends(void **state)
{
    (void)state;
    expect("+OK\r\n", "g.");
    expect(":-12\r\n:7\r\n", "gg.");
    expect("$3\r\na\nb\r\n", "g.");
    expect("$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n", "gggg.");
    expect("*3\r\n:1\r\n*2\r\n$1\r\nx\r\n*0\r\n+a\r\n+next\r\n", "gg.");
    expect("%2\r\n+a\r\n:1\r\n+b\r\n~1\r\n_\r\n", "g.");
    expect("#t\r\n,1.5\r\n(123\r\n=7\r\ntxt:abc\r\n", "gggg.");
    expect("|1\r\n+ttl\r\n:3\r\n*1\r\n$2\r\nab\r\n+x\r\n", "gg.");
    expect("%0\r\n~0\r\n", "gg.");
    expect(":1234567890123456\r\n:12345678901234567\r\n:123456789012345678901234567890\r\n:0\r\n", "gggg.");
    expect("*3\r\n+OK\r\n:1\r\n$3\r\n+OK\r\n+OK\r\n", "gg.");
    expect("$99999999999999999\r\n+OK\r\n", "b?");
}

static void errors_are_told(void **state)
{
    struct replies replies = {0};
    struct slice input = SLICE("-ERR what is this\r\n");

    (void)state;
    expect("-ERR x\r\n+OK\r\n!3\r\nERR\r\n*1\r\n-inside\r\n", "egeg.");
    assert_int_equal(replies_next(&replies, &input), REPLIES_ERROR);
    assert_string_equal(replies.error, "ERR what is this");
    input = SLICE("!7\r\nERR abc\r\n");
    assert_int_equal(replies_next(&replies, &input), REPLIES_ERROR);
    assert_string_equal(replies.error, "ERR abc");
}

static void a_long_error_is_cut(void **state)
{
    struct replies replies = {0};
    char text[1000];
    struct slice input = slice_make(text, sizeof(text));

    (void)state;
    memset(text, 'x', sizeof(text));
    text[0] = '-';
    text[sizeof(text) - 1] = '\n';
    assert_int_equal(replies_next(&replies, &input), REPLIES_ERROR);
    assert_int_equal(strlen(replies.error), REPLIES_ERROR_BYTES - 1);
}

static void pushes_are_passed_over(void **state)
{
    (void)state;
    expect(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n>0\r\n", "g.");
    expect("|1\r\n+a\r\n>0\r\n>1\r\n:1\r\n|1\r\n+a\r\n+b\r\n-ERR\r\n", "e.");
}

static void what_is_no_reply_is_broken(void **state)
{
    (void)state;
    expect("HTTP/1.1 200 OK\r\n", "b?");
    expect("$x\r\n", "b?");
    expect("*1a\r\n", "b?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_form_ends_where_it_ends), cmocka_unit_test(errors_are_told),
        cmocka_unit_test(a_long_error_is_cut),          cmocka_unit_test(pushes_are_passed_over),
        cmocka_unit_test(what_is_no_reply_is_broken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
