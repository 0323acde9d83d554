#include "tools/cli/compare.h"

#include "base/compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct resp_reply *parsed(const char *bytes)
{
    struct resp_reply_parser parser;
    struct resp_reply *reply = NULL;
    size_t consumed;

    resp_reply_parser_init(&parser);
    assert_int_equal(resp_reply_parse(&parser, bytes, strlen(bytes), &consumed, &reply), RESP_REPLY_READY);
    resp_reply_parser_fini(&parser);
    return reply;
}

static bool equal(const char *type, const char *first, const char *second)
{
    struct resp_reply *a = parsed(first), *b = parsed(second);
    bool result = compare_values_equal(type, a, b);

    resp_reply_destroy(&a);
    resp_reply_destroy(&b);
    return result;
}

static void members_without_an_order_may_come_in_any(void **state)
{
    (void)state;
    assert_true(equal("set", "*2\r\n+a\r\n+b\r\n", "*2\r\n+b\r\n+a\r\n"));
    assert_false(equal("set", "*2\r\n+a\r\n+b\r\n", "*2\r\n+b\r\n+c\r\n"));
    assert_true(equal("hash", "*4\r\n+a\r\n+1\r\n+b\r\n+2\r\n", "*4\r\n+b\r\n+2\r\n+a\r\n+1\r\n"));
    assert_false(equal("hash", "*4\r\n+a\r\n+1\r\n+b\r\n+2\r\n", "*4\r\n+b\r\n+1\r\n+a\r\n+2\r\n"));
    assert_false(equal("list", "*2\r\n+a\r\n+b\r\n", "*2\r\n+b\r\n+a\r\n"));
    assert_false(equal("zset", "*2\r\n+a\r\n+1\r\n", "*2\r\n+a\r\n+2\r\n"));
    assert_true(equal("string", "$1\r\nx\r\n", "$1\r\nx\r\n"));
    assert_false(equal("string", "$1\r\nx\r\n", "$-1\r\n"));
    assert_false(equal("other", "$1\r\nx\r\n", "$2\r\nxy\r\n"));
}

static void strange_replies_are_compared_all_the_same(void **state)
{
    (void)state;
    assert_false(equal("set", "*2\r\n*0\r\n:2\r\n", "*2\r\n:2\r\n*0\r\n"));
    assert_true(equal("hash", "*3\r\n+a\r\n+b\r\n+c\r\n", "*3\r\n+a\r\n+b\r\n+c\r\n"));
    assert_true(equal("set", "*0\r\n", "*0\r\n"));
    assert_false(equal("hash", "-ERR x\r\n", "*0\r\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_without_an_order_may_come_in_any),
        cmocka_unit_test(strange_replies_are_compared_all_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
