/* Snapshots of known length and with a mark, in pieces of every size. */
#include "replication/transfer.h"

#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MARK "0123456789012345678901234567890123456789"

static void give(struct slice bytes, void *context)
{
    buffer_append_slice(context, bytes);
}

/* Takes the input in pieces; *used is what was taken of it. */
static enum transfer_result take_all(const char *input, size_t step, struct buffer *snapshot, size_t *used,
                                     struct transfer *transfer)
{
    enum transfer_result result = TRANSFER_MORE;
    size_t known = 0, taken;

    *used = 0;
    transfer_init(transfer);
    while (result == TRANSFER_MORE && known < strlen(input)) {
        known = MIN(known + step, strlen(input));
        result = transfer_take(transfer, input + *used, known - *used, &taken, give, snapshot);
        *used += taken;
    }
    return result;
}

static void expect_snapshot(const char *input, const char *snapshot, const char *left)
{
    for (size_t step = 1; step <= strlen(input); step++) {
        struct buffer got = {0};
        struct transfer transfer;
        size_t used;

        assert_int_equal(take_all(input, step, &got, &used, &transfer), TRANSFER_DONE);
        assert_string_equal(buffer_text(&got), snapshot);
        assert_string_equal(input + used, left);
        assert_int_equal(transfer.given_bytes, strlen(snapshot));
        buffer_fini(&got);
    }
}

static void expect_failure(const char *input, const char *error)
{
    for (size_t step = 1; step <= strlen(input); step++) {
        struct buffer got = {0};
        struct transfer transfer;
        size_t used;

        assert_int_equal(take_all(input, step, &got, &used, &transfer), TRANSFER_FAILED);
        assert_string_equal(transfer.error, error);
        assert_int_equal(got.size, 0);
        buffer_fini(&got);
    }
}

static void a_length_tells_the_end(void **state)
{
    (void)state;
    expect_snapshot("$5\r\nabcde", "abcde", "");
    expect_snapshot("\n\r\n\n$5\r\nabcdefg", "abcde", "fg");
    expect_snapshot("$1\n\n\n", "\n", "\n");
}

static void a_mark_tells_the_end(void **state)
{
    (void)state;
    expect_snapshot("$EOF:" MARK "\r\nabc" MARK, "abc", "");
    expect_snapshot("$EOF:" MARK "\r\n" MARK "*1\r\n", "", "*1\r\n");
    expect_snapshot("\n$EOF:" MARK "\r\n01234567890123456789x" MARK "y", "01234567890123456789x", "y");
    expect_snapshot("$EOF:" MARK "\r\n" MARK MARK, "", MARK);
}

static void other_lines_fail(void **state)
{
    (void)state;
    expect_failure("-ERR no\x01 fork\r\n", "the master ended the sync: '-ERR no? fork'");
    expect_failure("$0\r\n", "no snapshot begins with this: '$0'");
    expect_failure("$-1\r\n", "no snapshot begins with this: '$-1'");
    expect_failure("$9223372036854775808\r\n", "no snapshot begins with this: '$9223372036854775808'");
    expect_failure("$EOF:short\r\n", "no snapshot begins with this: '$EOF:short'");
    expect_failure("+OK\r\n", "no snapshot begins with this: '+OK'");
}

static void a_line_has_a_limit(void **state)
{
    char line[TRANSFER_LINE_MOST_BYTES + 2];
    struct buffer got = {0};
    struct transfer transfer;
    size_t used;

    (void)state;
    memset(line, '$', sizeof(line));
    line[TRANSFER_LINE_MOST_BYTES] = '\0';
    assert_int_equal(take_all(line, sizeof(line), &got, &used, &transfer), TRANSFER_MORE);
    line[TRANSFER_LINE_MOST_BYTES] = '$';
    line[TRANSFER_LINE_MOST_BYTES + 1] = '\0';
    assert_int_equal(take_all(line, sizeof(line), &got, &used, &transfer), TRANSFER_FAILED);
    buffer_fini(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_length_tells_the_end),
        cmocka_unit_test(a_mark_tells_the_end),
        cmocka_unit_test(other_lines_fail),
        cmocka_unit_test(a_line_has_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
