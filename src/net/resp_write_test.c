#include "net/resp.h"

#include "base/blob.h"
#include "base/buffer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct output output;

/* Expects that the output since the last call is exactly this. */
static void expect(const char *text)
{
    struct buffer got = {0};

    output_to_buffer(&output, &got);
    assert_string_equal(buffer_text(&got), text);
    output_clear(&output);
    buffer_fini(&got);
}

static void scalars(void **state)
{
    static const int64_t numbers[] = {0, 1, 9, 10, 99, 100, 101, 12345, -1, -10, INT64_MAX, INT64_MIN};

    (void)state;
    for (size_t i = 0; i < countof(numbers); i++) {
        char text[40];

        resp_write_int(&output, numbers[i]);
        snprintf(text, sizeof(text), ":%lld\r\n", (long long)numbers[i]);
        expect(text);
    }
    resp_write_ok(&output);
    expect("+OK\r\n");
    resp_write_status(&output, SLICE("PONG"));
    expect("+PONG\r\n");
    resp_write_error(&output, SLICE("ERR a\r\nb\nc"));
    expect("-ERR a  b c\r\n");
    resp_write_error_text(&output, "WRONGTYPE x");
    expect("-WRONGTYPE x\r\n");
    resp_write_bulk(&output, SLICE(""));
    expect("$0\r\n\r\n");
    resp_write_bulk(&output, SLICE_EMPTY);
    expect("$0\r\n\r\n");
    resp_write_bulk(&output, SLICE("hello"));
    expect("$5\r\nhello\r\n");
    resp_write_bulk_int(&output, -123);
    expect("$4\r\n-123\r\n");
}

/* Texts are copied in pieces of 256 bytes, also where a block has little room left. */
static void lines_of_every_size(void **state)
{
    static char text[3 * 256 + 2], line[sizeof(text) + 4];

    (void)state;
    for (size_t size = 0; size < sizeof(text); size++) {
        text[size] = (char)('a' + size % 26);
        if (size % 100 == 99)
            text[size] = size % 200 == 99 ? '\n' : '\r';
    }
    for (size_t size = 0; size <= sizeof(text); size++) {
        snprintf(line, sizeof(line), "-%.*s\r\n", (int)size, text);
        for (size_t i = 1; i <= size; i++)
            line[i] = line[i] < 'a' ? ' ' : line[i];
        resp_write_error(&output, slice_make(text, size));
        expect(line);
        resp_write_status(&output, slice_make(text, size)); /* two, so that blocks end in all places */
        resp_write_error(&output, slice_make(text, size));
        assert_int_equal(output_size(&output), 2 * (size + 3));
        output_consume(&output, size + 3);
        expect(line);
    }
}

static void differ_by_protocol(void **state)
{
    (void)state;
    resp_write_null(&output, 2);
    resp_write_null(&output, 3);
    expect("$-1\r\n_\r\n");
    resp_write_null_array(&output, 2);
    resp_write_null_array(&output, 3);
    expect("*-1\r\n_\r\n");
    resp_write_array(&output, 2, 3);
    resp_write_array(&output, 3, 3);
    expect("*3\r\n*3\r\n");
    resp_write_map(&output, 2, 60);
    resp_write_map(&output, 3, 60);
    expect("*120\r\n%60\r\n");
    resp_write_set(&output, 2, 0);
    resp_write_set(&output, 3, 0);
    expect("*0\r\n~0\r\n");
    resp_write_push(&output, 2, 2);
    resp_write_push(&output, 3, 2);
    expect("*2\r\n>2\r\n");
    resp_write_attribute(&output, 3, 1);
    expect("|1\r\n");
    resp_write_bool(&output, 2, true);
    resp_write_bool(&output, 2, false);
    resp_write_bool(&output, 3, true);
    resp_write_bool(&output, 3, false);
    expect(":1\r\n:0\r\n#t\r\n#f\r\n");
    resp_write_bignum(&output, 2, SLICE("123456789012345678901"));
    resp_write_bignum(&output, 3, SLICE("123456789012345678901"));
    expect("$21\r\n123456789012345678901\r\n(123456789012345678901\r\n");
    resp_write_verbatim(&output, 2, "txt", SLICE("a\r\nb"));
    resp_write_verbatim(&output, 3, "txt", SLICE("a\r\nb"));
    expect("$4\r\na\r\nb\r\n=8\r\ntxt:a\r\nb\r\n");
}

/* As Redis 7.0 prints them. */
static void doubles(void **state)
{
    (void)state;
    resp_write_double_text(&output, 2, SLICE("0.10"));
    resp_write_double_text(&output, 3, SLICE("0.10"));
    expect("$4\r\n0.10\r\n,0.10\r\n");
    resp_write_double(&output, 2, 3.14);
    resp_write_double(&output, 3, 3.14);
    expect("$18\r\n3.1400000000000001\r\n,3.1400000000000001\r\n");
    resp_write_double(&output, 2, 100);
    resp_write_double(&output, 3, INFINITY);
    resp_write_double(&output, 2, -INFINITY);
    expect("$3\r\n100\r\n,inf\r\n$4\r\n-inf\r\n");
    resp_write_double(&output, 3, 1.5e20);
    expect(",1.5e+20\r\n");
}

static void bulks_at_every_size_limit(void **state)
{
    static const size_t sizes[] = {
        4095, 4096, 4097, RESP_BY_REFERENCE_BYTES - 1, RESP_BY_REFERENCE_BYTES, RESP_BY_REFERENCE_BYTES + 1, 100000};

    (void)state;
    for (size_t i = 0; i < countof(sizes); i++) {
        struct blob *blob = blob_create(sizes[i] + 10);
        struct buffer got = {0};
        char head[32];
        size_t head_size = (size_t)snprintf(head, sizeof(head), "$%zu\r\n", sizes[i]);

        memset(blob->data, 'a' + (int)i, blob->size);
        resp_write_bulk_blob(&output, blob, 5, sizes[i]);
        assert_int_equal(!blob_is_exclusive(blob), sizes[i] >= RESP_BY_REFERENCE_BYTES);
        resp_write_bulk(&output, slice_make(blob->data, sizes[i]));
        output_to_buffer(&output, &got);
        assert_int_equal(got.size, 2 * (head_size + sizes[i] + 2));
        for (size_t part = 0; part < 2; part++) {
            char *at = got.data + part * (head_size + sizes[i] + 2);

            assert_memory_equal(at, head, head_size);
            assert_memory_equal(at + head_size, blob->data, sizes[i]);
            assert_memory_equal(at + head_size + sizes[i], "\r\n", 2);
        }
        output_clear(&output);
        assert_true(blob_is_exclusive(blob));
        buffer_fini(&got);
        blob_release(&blob);
    }
}

static void deferred_lengths(void **state)
{
    struct resp_deferred outer;
    struct resp_deferred inner;

    (void)state;
    resp_write_int(&output, 1);
    outer = resp_begin_deferred(&output);
    resp_write_int(&output, 2);
    inner = resp_begin_deferred(&output);
    resp_write_int(&output, 3);
    resp_end_deferred(&output, 3, inner, RESP_SET, 1);
    resp_end_deferred(&output, 3, outer, RESP_ARRAY, 2);
    resp_write_int(&output, 4);
    expect(":1\r\n*2\r\n:2\r\n~1\r\n:3\r\n:4\r\n");

    outer = resp_begin_deferred(&output);
    resp_end_deferred(&output, 2, outer, RESP_MAP, 50);
    expect("*100\r\n");
    outer = resp_begin_deferred(&output);
    resp_end_deferred(&output, 3, outer, RESP_MAP, 50);
    expect("%50\r\n");
}

/* The head is filled in after its elements went on into other blocks. */
static void deferred_over_blocks(void **state)
{
    struct resp_deferred deferred = resp_begin_deferred(&output);
    struct buffer got = {0};
    struct buffer wanted = {0};

    (void)state;
    for (int i = 0; i < 10000; i++)
        resp_write_int(&output, i);
    resp_end_deferred(&output, 2, deferred, RESP_ARRAY, 10000);
    buffer_append_text(&wanted, "*10000\r\n");
    for (int i = 0; i < 10000; i++)
        buffer_printf(&wanted, ":%d\r\n", i);
    output_to_buffer(&output, &got);
    assert_int_equal(got.size, wanted.size);
    assert_memory_equal(got.data, wanted.data, got.size);
    assert_int_equal(output_size(&output), got.size);
    output_clear(&output);
    buffer_fini(&got);
    buffer_fini(&wanted);
}

static void commands(void **state)
{
    const struct slice args[] = {SLICE("SET"), SLICE("key"), SLICE("")};

    (void)state;
    resp_write_command(&output, args, countof(args));
    expect("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$0\r\n\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars),
        cmocka_unit_test(lines_of_every_size),
        cmocka_unit_test(differ_by_protocol),
        cmocka_unit_test(doubles),
        cmocka_unit_test(bulks_at_every_size_limit),
        cmocka_unit_test(deferred_lengths),
        cmocka_unit_test(deferred_over_blocks),
        cmocka_unit_test(commands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
