#include "tools/cli/format.h"

#include "base/compiler.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct resp_reply *parsed(const char *bytes, size_t size)
{
    struct resp_reply_parser parser;
    struct resp_reply *reply = NULL;
    size_t consumed;

    resp_reply_parser_init(&parser);
    assert_int_equal(resp_reply_parse(&parser, bytes, size, &consumed, &reply), RESP_REPLY_READY);
    resp_reply_parser_fini(&parser);
    return reply;
}

static void expect(const char *bytes, size_t size, enum format format, const char *wanted)
{
    struct resp_reply *reply = parsed(bytes, size);
    struct buffer text = {0};

    format_reply(&text, reply, format, "|", "#");
    assert_string_equal(buffer_text(&text), wanted);
    buffer_fini(&text);
    resp_reply_destroy(&reply);
}

#define EXPECT(bytes, format, wanted) expect(bytes, sizeof(bytes) - 1, format, wanted)

static void people_see_types_and_numbers(void **state)
{
    (void)state;
    EXPECT("$4\r\na\"\0\xc3\r\n", FORMAT_TEXT, "\"a\\\"\\x00\\xc3\"\n");
    EXPECT("+OK\r\n", FORMAT_TEXT, "OK\n");
    EXPECT("-ERR x\r\n", FORMAT_TEXT, "(error) ERR x\n");
    EXPECT("!5\r\nERR x\r\n", FORMAT_TEXT, "(error) ERR x\n");
    EXPECT(":-3\r\n", FORMAT_TEXT, "(integer) -3\n");
    EXPECT(",1.50\r\n", FORMAT_TEXT, "(double) 1.50\n");
    EXPECT("(12345678901234567890123\r\n", FORMAT_TEXT, "(big number) 12345678901234567890123\n");
    EXPECT("#f\r\n", FORMAT_TEXT, "(false)\n");
    EXPECT("*-1\r\n", FORMAT_TEXT, "(nil)\n");
    EXPECT("=6\r\ntxt:ab\r\n", FORMAT_TEXT, "ab\n");
    EXPECT("*0\r\n", FORMAT_TEXT, "(empty array)\n");
    EXPECT("~0\r\n", FORMAT_TEXT, "(empty set)\n");
    EXPECT("%0\r\n", FORMAT_TEXT, "(empty hash)\n");
    EXPECT("*2\r\n*2\r\n:1\r\n:2\r\n*1\r\n*0\r\n", FORMAT_TEXT,
           "1) 1) (integer) 1\n   2) (integer) 2\n2) 1) (empty array)\n");
    EXPECT("*10\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n*2\r\n:2\r\n:3\r\n", FORMAT_TEXT,
           " 1) (integer) 1\n 2) (integer) 1\n 3) (integer) 1\n 4) (integer) 1\n 5) (integer) 1\n 6) (integer) 1\n"
           " 7) (integer) 1\n 8) (integer) 1\n 9) (integer) 1\n10) 1) (integer) 2\n    2) (integer) 3\n");
    EXPECT("%2\r\n+k\r\n*2\r\n:1\r\n:2\r\n+l\r\n*1\r\n:3\r\n", FORMAT_TEXT,
           "1# k => \n   1) (integer) 1\n   2) (integer) 2\n2# l => 1) (integer) 3\n");
    EXPECT("%1\r\n+k\r\n%1\r\n+l\r\n*1\r\n*2\r\n:1\r\n:2\r\n", FORMAT_TEXT,
           "1# k => \n   1# l => \n      1) 1) (integer) 1\n         2) (integer) 2\n");
    EXPECT("%1\r\n*2\r\n:1\r\n:2\r\n~1\r\n:5\r\n", FORMAT_TEXT,
           "1# 1) (integer) 1\n   2) (integer) 2 => 1~ (integer) 5\n");
}

static void raw_is_the_bytes_and_delimiters(void **state)
{
    (void)state;
    EXPECT("$2\r\na\n\r\n", FORMAT_RAW, "a\n#");
    EXPECT("-ERR x\r\n", FORMAT_RAW, "ERR x\n#");
    EXPECT("*3\r\n$-1\r\n:1\r\n*2\r\n+a\r\n+b\r\n", FORMAT_RAW, "|1|a|b#");
    EXPECT("%2\r\n+a\r\n:1\r\n+b\r\n*2\r\n:2\r\n:3\r\n", FORMAT_RAW, "a 1|b 2|3#");
}

static void csv_has_all_in_one_line(void **state)
{
    (void)state;
    EXPECT("*4\r\n$1\r\n\"\r\n:1\r\n$-1\r\n-ERR x\r\n", FORMAT_CSV, "\"\\\"\",1,NULL,ERROR,\"ERR x\"\n");
    EXPECT("%1\r\n#t\r\n*2\r\n,1.5\r\n*0\r\n", FORMAT_CSV, "true,1.5,\n");
}

static void json_is_json(void **state)
{
    (void)state;
    EXPECT("$6\r\n\"\\\n\1\xc3\xa9\r\n", FORMAT_JSON, "\"\\\"\\\\\\n\\u0001\xc3\xa9\"\n");
    EXPECT("%3\r\n:1\r\n#t\r\n$1\r\na\r\n_\r\n%1\r\n+x\r\n:1\r\n,0.5\r\n", FORMAT_JSON,
           "{\"1\":true,\"a\":null,\"{\\\"x\\\":1}\":0.5}\n");
    EXPECT("*2\r\n~1\r\n:1\r\n*0\r\n", FORMAT_JSON, "[[1],[]]\n");
    EXPECT("%1\r\n*1\r\n%1\r\n*1\r\n%1\r\n*1\r\n%1\r\n*1\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n", FORMAT_JSON,
           "{\"[{\\\"[{\\\\\\\"[{\\\\\\\\\\\\\\\"...\\\\\\\\\\\\\\\":2}]\\\\\\\":3}]\\\":4}]\":5}\n");
    EXPECT("$3\r\n\"\0\n\r\n", FORMAT_QUOTED_JSON, "\"\\\\\\\"\\\\x00\\\\n\"\n");
}

static void invalidations_are_one_line_for_people(void **state)
{
    const char bytes[] = ">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n";
    const char all[] = ">2\r\n$10\r\ninvalidate\r\n*-1\r\n";
    struct resp_reply *push = parsed(bytes, sizeof(bytes) - 1);
    struct buffer text = {0};

    (void)state;
    format_push(&text, push, FORMAT_TEXT, "|", "#");
    assert_string_equal(buffer_text(&text), "-> invalidate: 'a', 'b'\n");
    buffer_clear(&text);
    format_push(&text, push, FORMAT_RAW, "|", "#");
    assert_string_equal(buffer_text(&text), "invalidate|a|b#");
    buffer_clear(&text);
    resp_reply_destroy(&push);
    push = parsed(all, sizeof(all) - 1);
    format_push(&text, push, FORMAT_TEXT, "|", "#");
    assert_string_equal(buffer_text(&text), "1) \"invalidate\"\n2) (nil)\n");
    buffer_fini(&text);
    resp_reply_destroy(&push);
}

/* Whatever a server says: every form has it, as deep as the parser goes. */
static void any_reply_has_every_form(void **state)
{
    struct random random = test_random("any_reply_has_every_form");

    (void)state;
    for (int round = 0; round < 3000; round++) {
        static const char *const scalars[] = {":1\r\n", "$3\r\na\0b\r\n", "$-1\r\n", "#t\r\n", ",inf\r\n", "+\r\n",
                                              "(1\r\n", "=4\r\ntxt:\r\n", "-E\r\n",  "_\r\n",  "*0\r\n",   "%0\r\n"};
        static const size_t sizes[] = {4, 9, 5, 4, 6, 3, 4, 10, 4, 3, 4, 4};
        struct buffer bytes = {0}, text = {0};
        struct resp_reply *reply;
        size_t depth = random_below(&random, round % 10 == 0 ? 126 : 6), open = 0;

        for (size_t i = 0; i < depth; i++) {
            char type = "*%~>"[random_below(&random, 4)];

            buffer_printf(&bytes, "%c1\r\n", type);
            if (type == '%' && random_below(&random, 2) == 0) {
                buffer_append_text(&bytes, ":5\r\n"); /* the key; what follows is the value */
                continue;
            }
            open += type == '%'; /* what follows is the key */
        }
        do {
            size_t one = random_below(&random, countof(scalars));

            buffer_append(&bytes, scalars[one], sizes[one]);
        } while (open-- > 0);
        reply = parsed(bytes.data, bytes.size);
        for (int format = FORMAT_TEXT; format <= FORMAT_QUOTED_JSON; format++)
            format_reply(&text, reply, (enum format)format, "\n", "\n");
        assert_true(text.size > 0);
        resp_reply_destroy(&reply);
        buffer_fini(&bytes);
        buffer_fini(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(people_see_types_and_numbers),
        cmocka_unit_test(raw_is_the_bytes_and_delimiters),
        cmocka_unit_test(csv_has_all_in_one_line),
        cmocka_unit_test(json_is_json),
        cmocka_unit_test(invalidations_are_one_line_for_people),
        cmocka_unit_test(any_reply_has_every_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
