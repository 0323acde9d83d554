#include "net/resp.h"

#include "base/buffer.h"
#include "base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* A tree as text: type byte, content, elements in parentheses, attributes in braces in front. */
static void describe(struct buffer *to, const struct resp_reply *reply)
{
    if (reply->attribute != NULL) {
        buffer_append_char(to, '{');
        describe(to, reply->attribute);
        buffer_append_char(to, '}');
    }
    buffer_append_char(to, (char)reply->type);
    if (reply->type == RESP_TYPE_NULL)
        buffer_append_char(to, (char)reply->was);
    if (reply->type == RESP_TYPE_INT || reply->type == RESP_TYPE_BOOL)
        buffer_append_i64(to, reply->integer);
    else if (reply->type == RESP_TYPE_DOUBLE)
        buffer_printf(to, "%g", reply->number);
    else if (reply->text != NULL)
        buffer_append(to, reply->text, reply->size);
    if (reply->type == RESP_TYPE_VERBATIM)
        buffer_printf(to, "/%s", reply->format);
    if (reply->elements != NULL || reply->type == RESP_TYPE_ARRAY || reply->type == RESP_TYPE_MAP) {
        buffer_append_char(to, '(');
        for (size_t i = 0; i < reply->element_count; i++) {
            if (i > 0)
                buffer_append_char(to, ' ');
            describe(to, reply->elements[i]);
        }
        buffer_append_char(to, ')');
    }
}

static void read_pieces(struct buffer *meaning, struct slice stream, size_t piece)
{
    struct resp_reply_parser parser;
    struct buffer input = {0};

    resp_reply_parser_init(&parser);
    buffer_clear(meaning);
    for (size_t at = 0; at < stream.size;) {
        size_t part = MIN(piece, stream.size - at);
        enum resp_reply_result result = RESP_REPLY_READY;

        buffer_append(&input, stream.data + at, part);
        at += part;
        while (result == RESP_REPLY_READY) {
            struct resp_reply *reply = NULL;
            size_t consumed = 0;

            result = resp_reply_parse(&parser, input.data, input.size, &consumed, &reply);
            assert_int_equal(reply != NULL, result == RESP_REPLY_READY);
            assert_true(consumed <= input.size);
            buffer_consume(&input, consumed);
            if (result == RESP_REPLY_READY) {
                describe(meaning, reply);
                buffer_append_char(meaning, ';');
                resp_reply_destroy(&reply);
            }
        }
        if (result == RESP_REPLY_ERROR) {
            buffer_append_char(meaning, '!');
            break;
        }
    }
    resp_reply_parser_fini(&parser);
    buffer_fini(&input);
}

static void expect_meaning(struct slice stream, const char *wanted)
{
    static const size_t pieces[] = {SIZE_MAX, 1, 2, 5};
    struct buffer meaning = {0};

    for (size_t i = 0; i < countof(pieces); i++) {
        read_pieces(&meaning, stream, pieces[i]);
        assert_string_equal(buffer_text(&meaning), wanted);
    }
    buffer_fini(&meaning);
}

static const struct {
    const char *stream;
    const char *meaning;
} examples[] = {
    {"+OK\r\n", "+OK;"},
    {"+\r\n", "+;"},
    {"-ERR no\r\n", "-ERR no;"},
    {":123\r\n:-5\r\n:+7\r\n", ":123;:-5;:7;"},
    {"$5\r\nhello\r\n$0\r\n\r\n", "$hello;$;"},
    {"$-1\r\n*-1\r\n_\r\n", "_$;_*;__;"},
    {"*0\r\n*2\r\n:1\r\n*1\r\n+a\r\n", "*();*(:1 *(+a));"},
    {"%1\r\n+k\r\n:1\r\n", "%(+k :1);"},
    {"%0\r\n", "%();"},
    {"~2\r\n:1\r\n:2\r\n", "~(:1 :2);"},
    {">2\r\n+a\r\n+b\r\n", ">(+a +b);"},
    {"#t\r\n#f\r\n", "#1;#0;"},
    {",1.5\r\n,inf\r\n,-inf\r\n,10\r\n", ",1.5;,inf;,-inf;,10;"},
    {"(12345678901234567890\r\n(-1\r\n", "(12345678901234567890;(-1;"},
    {"!5\r\nERR x\r\n", "!ERR x;"},
    {"=8\r\ntxt:a\r\nb\r\n", "=a\r\nb/txt;"},
    {"|1\r\n+k\r\n:1\r\n*2\r\n|1\r\n+x\r\n+y\r\n:1\r\n:2\r\n", "{|(+k :1)}*({|(+x +y)}:1 :2);"},
    {"|0\r\n:1\r\n", "{|}:1;"},
    {"*1\r\n$3\r\nab", ""},
    {"?\r\n", "!"},
    {":1x\r\n", "!"},
    {":\r\n", "!"},
    {"$-2\r\n", "!"},
    {"$3\r\nabcd\r\n", "!"},
    {"#x\r\n", "!"},
    {",x\r\n", "!"},
    {"(1x\r\n", "!"},
    {"(\r\n", "!"},
    {"_x\r\n", "!"},
    {"=3\r\nabc\r\n", "!"},
    {"=5\r\nabcde\r\n", "!"},
    {"+a\n", "!"},
    {"%-1\r\n", "!"},
    {"*99999999999\r\n", "!"},
    {"$99999999999\r\n", "!"},
};

static void every_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(examples); i++)
        expect_meaning(slice_from_text(examples[i].stream), examples[i].meaning);
}

static void not_a_number(void **state)
{
    struct resp_reply_parser parser;
    struct resp_reply *reply = NULL;
    size_t consumed = 0;

    (void)state;
    resp_reply_parser_init(&parser);
    assert_int_equal(resp_reply_parse(&parser, ",nan\r\n", 6, &consumed, &reply), RESP_REPLY_READY);
    assert_true(isnan(reply->number));
    resp_reply_destroy(&reply);
    resp_reply_parser_fini(&parser);
}

static void depth_has_a_limit(void **state)
{
    struct buffer stream = {0};
    struct buffer meaning = {0};

    (void)state;
    for (int i = 0; i < RESP_REPLY_DEPTH_MAX; i++)
        buffer_append_text(&stream, "*1\r\n");
    buffer_append_text(&stream, ":1\r\n");
    read_pieces(&meaning, buffer_slice(&stream), SIZE_MAX);
    assert_true(meaning.size > 0 && meaning.data[meaning.size - 1] == ';');
    buffer_clear(&stream);
    for (int i = 0; i < RESP_REPLY_DEPTH_MAX + 1; i++)
        buffer_append_text(&stream, "*1\r\n");
    read_pieces(&meaning, buffer_slice(&stream), SIZE_MAX);
    assert_string_equal(buffer_text(&meaning), "!");
    buffer_fini(&stream);
    buffer_fini(&meaning);
}

/* An announced billion takes no memory until it comes. */
static void counts_are_not_believed(void **state)
{
    struct resp_reply_parser parser;
    struct resp_reply *reply = NULL;
    size_t consumed = 0;

    (void)state;
    resp_reply_parser_init(&parser);
    assert_int_equal(resp_reply_parse(&parser, "*1000000000\r\n:1\r\n", 17, &consumed, &reply), RESP_REPLY_MORE);
    assert_int_equal(consumed, 17);
    resp_reply_parser_fini(&parser);
}

static void damage_is_survived(void **state)
{
    static const char alphabet[] = "*$:+-_#,(!=%~>|\r\n0123456789tfa.";
    struct random random;
    struct buffer one = {0};
    struct buffer other = {0};

    (void)state;
    random_seed(&random, 99);
    for (int round = 0; round < 20000; round++) {
        struct buffer stream = {0};

        for (uint64_t n = 1 + random_below(&random, 4); n > 0; n--)
            buffer_append_text(&stream, examples[random_below(&random, countof(examples))].stream);
        for (uint64_t n = random_below(&random, 4); n > 0; n--)
            stream.data[random_below(&random, stream.size)] = alphabet[random_below(&random, sizeof(alphabet) - 1)];
        read_pieces(&one, buffer_slice(&stream), SIZE_MAX);
        read_pieces(&other, buffer_slice(&stream), 1 + random_below(&random, 9));
        assert_string_equal(buffer_text(&one), buffer_text(&other));
        buffer_fini(&stream);
    }
    buffer_fini(&one);
    buffer_fini(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type),         cmocka_unit_test(not_a_number),
        cmocka_unit_test(depth_has_a_limit),  cmocka_unit_test(counts_are_not_believed),
        cmocka_unit_test(damage_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
