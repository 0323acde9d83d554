#include "tools/benchmark/workload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct random dice;
static struct distribution keys;

static int reset(void **state)
{
    (void)state;
    random_seed(&dice, 1);
    assert_null(distribution_parse("sequential", &keys));
    distribution_begin(&keys, 1000);
    return 0;
}

static void expect(struct workload *workload, const char *tag, const char *expected)
{
    struct buffer out = {0};

    buffer_append_text(&out, "before");
    assert_true(workload_next(workload, &dice, tag, &out) < workload->count);
    assert_string_equal(buffer_text(&out) + 6, expected);
    buffer_fini(&out);
}

static void marks_are_replaced_each_time(void **state)
{
    const struct slice words[] = {SLICE("SET"), SLICE("k:__rand_int__:__rand_int__"), SLICE("<__data__>")};
    struct workload workload;

    (void)state;
    workload_init(&workload, &keys, SLICE("xyz"), 3);
    assert_true(workload_add(&workload, 1, words, 3));
    assert_false(workload_is_constant(&workload));
    expect(&workload, NULL, "*3\r\n$3\r\nSET\r\n$27\r\nk:000000000000:000000000001\r\n$5\r\n<xyz>\r\n");
    expect(&workload, NULL, "*3\r\n$3\r\nSET\r\n$27\r\nk:000000000002:000000000003\r\n$5\r\n<xyz>\r\n");
    workload_fini(&workload);
}

static void without_keys_numbers_stay(void **state)
{
    const struct slice words[] = {SLICE("GET"), SLICE("key:__rand_int__")};
    struct workload workload;

    (void)state;
    workload_init(&workload, NULL, SLICE("xyz"), 3);
    assert_true(workload_add(&workload, 1, words, 2));
    assert_true(workload_is_constant(&workload));
    expect(&workload, NULL, "*2\r\n$3\r\nGET\r\n$16\r\nkey:__rand_int__\r\n");
    workload_fini(&workload);
}

static void tags_are_those_of_the_connection(void **state)
{
    const struct slice words[] = {SLICE("GET"), SLICE("key:{tag}:__rand_int__")};
    struct workload workload;

    (void)state;
    workload_init(&workload, &keys, SLICE(""), 0);
    assert_true(workload_add(&workload, 1, words, 2));
    expect(&workload, "0ab", "*2\r\n$3\r\nGET\r\n$22\r\nkey:{0ab}:000000000000\r\n");
    expect(&workload, NULL, "*2\r\n$3\r\nGET\r\n$22\r\nkey:{tag}:000000000001\r\n");
    workload_fini(&workload);
}

/* Each request is a whole one, and the sizes of its payloads are all that were asked for. */
static void payloads_of_changing_sizes(void **state)
{
    const struct slice words[] = {SLICE("MSET"), SLICE("a__rand_int__"), SLICE("__data__"), SLICE("b__rand_int__"),
                                  SLICE("__data__")};
    struct workload workload;
    struct buffer out = {0}, expected = {0};
    unsigned seen = 0;

    (void)state;
    workload_init(&workload, &keys, SLICE("abcd"), 2);
    assert_true(workload_add(&workload, 1, words, 5));
    for (int i = 0; i < 200; i++) {
        int first, second;

        buffer_clear(&out);
        assert_int_equal(workload_next(&workload, &dice, NULL, &out), 0);
        first = strchr(strchr(buffer_text(&out), 'a'), '$')[1] - '0'; /* behind the first key */
        second = strrchr(buffer_text(&out), '$')[1] - '0';
        buffer_clear(&expected);
        buffer_printf(&expected, "*5\r\n$4\r\nMSET\r\n$13\r\na%012d\r\n$%d\r\n%.*s\r\n$13\r\nb%012d\r\n$%d\r\n%.*s\r\n",
                      2 * i % 1000, first, first, "abcd", (2 * i + 1) % 1000, second, second, "abcd");
        assert_string_equal(buffer_text(&out), buffer_text(&expected));
        seen |= 1U << first | 1U << second;
    }
    assert_int_equal(seen, 1U << 2 | 1U << 3 | 1U << 4);
    buffer_fini(&out);
    buffer_fini(&expected);
    workload_fini(&workload);
}

/* A key has the same size whenever it comes; other words stay as they are. */
static void keys_of_changing_sizes(void **state)
{
    const struct slice words[] = {SLICE("MSET"), SLICE("key:__rand_int__"), SLICE("__data__"),
                                  SLICE("key:__rand_int__"), SLICE("el:__rand_int__")};
    size_t sizes[1000] = {0}, different = 0;
    struct workload workload;
    struct buffer out = {0}, expected = {0};

    (void)state;
    workload_init(&workload, &keys, SLICE("abcd"), 2);
    workload_set_key_sizes(&workload, 10, 30);
    assert_true(workload_add(&workload, 1, words, 5));
    for (int i = 0; i < 1000; i++) {
        const int first = 3 * i % 1000, second = (3 * i + 1) % 1000, third = (3 * i + 2) % 1000;
        size_t size[2], payload;
        const char *at;

        buffer_clear(&out);
        assert_int_equal(workload_next(&workload, &dice, NULL, &out), 0);
        at = buffer_text(&out) + strlen("*5\r\n$4\r\nMSET\r\n");
        size[0] = strtoul(at + 1, NULL, 10);
        at += strlen("$16\r\n") + size[0] + 2;
        payload = strtoul(at + 1, NULL, 10);
        at += strlen("$2\r\n") + payload + 2;
        size[1] = strtoul(at + 1, NULL, 10);
        assert_true(size[0] >= 16 && size[0] <= 30 && size[1] >= 16 && size[1] <= 30);
        buffer_clear(&expected);
        buffer_printf(&expected, "*5\r\n$4\r\nMSET\r\n$%zu\r\nkey:%012d%.*s\r\n$%zu\r\n%.*s\r\n", size[0], first,
                      (int)size[0] - 16, "xxxxxxxxxxxxxx", payload, (int)payload, "abcd");
        buffer_printf(&expected, "$%zu\r\nkey:%012d%.*s\r\n$15\r\nel:%012d\r\n", size[1], second, (int)size[1] - 16,
                      "xxxxxxxxxxxxxx", third);
        assert_string_equal(buffer_text(&out), buffer_text(&expected));
        assert_true(sizes[first] == 0 || sizes[first] == size[0]);
        assert_true(sizes[second] == 0 || sizes[second] == size[1]);
        sizes[first] = size[0];
        sizes[second] = size[1];
        different += size[0] != size[1];
    }
    assert_true(different > 500);
    buffer_fini(&out);
    buffer_fini(&expected);
    workload_fini(&workload);
}

static void keys_of_one_size(void **state)
{
    const struct slice words[] = {SLICE("SET"), SLICE("a:__rand_int__"), SLICE("v")},
                       list[] = {SLICE("LPUSH"), SLICE("l")};
    struct workload workload;

    (void)state;
    workload_init(&workload, &keys, SLICE("abcd"), 4);
    workload_set_key_sizes(&workload, 16, 16);
    assert_true(workload_add(&workload, 1, words, 3));
    expect(&workload, NULL, "*3\r\n$3\r\nSET\r\n$16\r\na:000000000000xx\r\n$1\r\nv\r\n");
    expect(&workload, NULL, "*3\r\n$3\r\nSET\r\n$16\r\na:000000000001xx\r\n$1\r\nv\r\n");
    workload_fini(&workload);
    workload_init(&workload, &keys, SLICE("abcd"), 4);
    workload_set_key_sizes(&workload, 8, 16);
    assert_true(workload_add(&workload, 1, list, 2));
    expect(&workload, NULL, "*2\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n");
    workload_fini(&workload);
}

static void shares_are_kept(void **state)
{
    const struct slice set[] = {SLICE("SET"), SLICE("k"), SLICE("v")}, get[] = {SLICE("GET"), SLICE("k")};
    struct workload workload;
    struct buffer out = {0};
    int sets = 0;

    (void)state;
    workload_init(&workload, NULL, SLICE("x"), 1);
    assert_true(workload_add(&workload, 1, set, 3));
    assert_true(workload_add(&workload, 9, get, 2));
    for (int i = 0; i < 10000; i++) {
        buffer_clear(&out);
        sets += workload_next(&workload, &dice, NULL, &out) == 0;
    }
    assert_true(sets > 850 && sets < 1150);
    for (int i = 2; i < WORKLOAD_COMMANDS_MOST; i++)
        assert_true(workload_add(&workload, 1, get, 2));
    assert_false(workload_add(&workload, 1, get, 2));
    buffer_fini(&out);
    workload_fini(&workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(marks_are_replaced_each_time, reset),
        cmocka_unit_test_setup(without_keys_numbers_stay, reset),
        cmocka_unit_test_setup(tags_are_those_of_the_connection, reset),
        cmocka_unit_test_setup(payloads_of_changing_sizes, reset),
        cmocka_unit_test_setup(keys_of_changing_sizes, reset),
        cmocka_unit_test_setup(keys_of_one_size, reset),
        cmocka_unit_test_setup(shares_are_kept, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
