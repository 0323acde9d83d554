#include "commands/shared/range.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The rule in other words, byte by byte. */
static bool byte_is_in_any(int64_t at, int64_t start, int64_t end, int64_t size)
{
    int64_t from = start < 0 ? start + size : start, to = end < 0 ? end + size : end;

    if (from < 0)
        from = 0;
    if (to < 0)
        to = 0;
    return at >= from && at <= to;
}

static bool byte_is_in(int64_t at, int64_t start, int64_t end, int64_t size)
{
    return !(start < 0 && end < 0 && start > end) && byte_is_in_any(at, start, end, size);
}

static void small_ranges_agree_with_the_rule(void **state)
{
    (void)state;
    for (int64_t size = 0; size < 6; size++) {
        for (int64_t start = -9; start < 9; start++) {
            for (int64_t end = -9; end < 9; end++) {
                size_t first = 99, count = 0, any_first = 99, any_count = 0;
                bool some = range_of_bytes(start, end, (size_t)size, &first, &count);
                bool any = range_of_any_ends(start, end, (size_t)size, &any_first, &any_count);
                int64_t in = 0;

                for (int64_t at = 0; at < size; at++) {
                    bool inside = some && at >= (int64_t)first && at < (int64_t)(first + count);

                    assert_int_equal(inside, byte_is_in(at, start, end, size));
                    inside = any && at >= (int64_t)any_first && at < (int64_t)(any_first + any_count);
                    assert_int_equal(inside, byte_is_in_any(at, start, end, size));
                    inside = byte_is_in(at, start, end, size);
                    in += inside;
                }
                assert_int_equal(some, in != 0);
                assert_true(!some || (int64_t)count == in);
            }
        }
    }
}

static void extreme_ends_do_not_overflow(void **state)
{
    size_t first, count;

    (void)state;
    assert_true(range_of_bytes(INT64_MIN, INT64_MAX, 7, &first, &count));
    assert_int_equal(first, 0);
    assert_int_equal(count, 7);
    assert_false(range_of_bytes(INT64_MAX, INT64_MIN, 7, &first, &count));
    assert_false(range_of_bytes(INT64_MAX, INT64_MAX, 7, &first, &count));
    assert_true(range_of_bytes(INT64_MIN, INT64_MIN, 7, &first, &count)); /* both the first byte */
    assert_int_equal(count, 1);
    assert_false(range_of_bytes(0, -1, 0, &first, &count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_ranges_agree_with_the_rule),
        cmocka_unit_test(extreme_ends_do_not_overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
