#include "server/command/operation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { WORDS_MOST = 8 };

static struct operation_touch touch_of(const char *text)
{
    struct slice words[WORDS_MOST];
    uint32_t count = 0;

    for (const char *end; *text != '\0'; text = *end == ' ' ? end + 1 : end) {
        end = text + strcspn(text, " ");
        assert_true(count < WORDS_MOST);
        words[count++] = slice_make(text, (size_t)(end - text));
    }
    return operation_touch(words, count);
}

/* The column "in place" of the table in docs/active-replication.md. */
static void the_table_says_what_touches_one_member(void **state)
{
    static const struct {
        const char *words;
        enum operation_touch_kind kind;
        const char *member; /* NULL: the value itself, or none */
    } rows[] = {
        {"INCR k", OPERATION_ADDS, NULL},
        {"decr k", OPERATION_ADDS, NULL},
        {"INCRBY k -5", OPERATION_ADDS, NULL},
        {"DECRBY k 5", OPERATION_ADDS, NULL},
        {"INCRBY k 1099511627776", OPERATION_TOUCHES_ALL, NULL},
        {"HINCRBY k f 5", OPERATION_ADDS, "f"},
        {"HINCRBY k f 1099511627776", OPERATION_TOUCHES_ALL, NULL},
        {"INCRBYFLOAT k 0.5", OPERATION_TOUCHES_ALL, NULL},
        {"HSET k f v", OPERATION_WRITES, "f"},
        {"HMSET k f v", OPERATION_WRITES, "f"},
        {"HSET k f v g w", OPERATION_TOUCHES_ALL, NULL},
        {"HDEL k f", OPERATION_REMOVES, "f"},
        {"HDEL k f g", OPERATION_TOUCHES_ALL, NULL},
        {"SADD k a", OPERATION_WRITES, "a"},
        {"SADD k a b", OPERATION_TOUCHES_ALL, NULL},
        {"SREM k a", OPERATION_REMOVES, "a"},
        {"ZADD k 1 a", OPERATION_WRITES, "a"},
        {"ZADD k GT 1 a", OPERATION_TOUCHES_ALL, NULL},
        {"ZADD k 1 a 2 b", OPERATION_TOUCHES_ALL, NULL},
        {"ZREM k a", OPERATION_REMOVES, "a"},
        {"ZINCRBY k 1 a", OPERATION_TOUCHES_ALL, NULL},
        {"LPUSH k a", OPERATION_PUSHES_FIRST, NULL},
        {"RPUSH k a b c", OPERATION_PUSHES_LAST, NULL},
        {"PFADD k a", OPERATION_TOUCHES_ALL, NULL},
        {"APPEND k a", OPERATION_TOUCHES_ALL, NULL},
        {"PEXPIREAT k 5", OPERATION_TOUCHES_ALL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        const struct operation_touch touch = touch_of(rows[i].words);

        if (touch.kind != rows[i].kind)
            fail_msg("%s: %d, not %d", rows[i].words, (int)touch.kind, (int)rows[i].kind);
        if (rows[i].member == NULL)
            assert_null(touch.member.data);
        else
            assert_true(slice_equal_text(touch.member, rows[i].member));
    }
    assert_int_equal(touch_of("RPUSH k a b c").count, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_says_what_touches_one_member),
    };

    return cmocka_run_group_tests_name("operation", tests, NULL, NULL);
}
