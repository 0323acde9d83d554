#include "base/buffer.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MODEL_BYTES 4096

static void agrees_with_an_array(void **state)
{
    struct random random = test_random("agrees_with_an_array");
    static char model[MODEL_BYTES];
    size_t size = 0;
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer);
    for (unsigned round = 0; round < 20000; round++) {
        char bytes[300];
        size_t count = random_below(&random, sizeof(bytes));

        switch (random_below(&random, 7)) {
        case 0:
        case 1:
            for (size_t i = 0; i < count; i++)
                bytes[i] = (char)random_u64(&random);
            if (size + count > MODEL_BYTES)
                break;
            buffer_append(&buffer, bytes, count);
            memcpy(model + size, bytes, count);
            size += count;
            break;
        case 2:
            count = MIN(count, size);
            buffer_consume(&buffer, count);
            memmove(model, model + count, size - count);
            size -= count;
            break;
        case 3:
            size -= MIN(count, size);
            buffer_truncate(&buffer, size);
            break;
        case 4:
            buffer_shrink(&buffer);
            break;
        case 5:
            if (size + 25 > MODEL_BYTES)
                break;
            buffer_printf(&buffer, "%d,%s", 42, "x");
            buffer_append_i64(&buffer, -7);
            memcpy(model + size, "42,x-7", 6);
            size += 6;
            break;
        default:
            assert_int_equal(buffer_text(&buffer)[size], '\0');
        }
        assert_int_equal(buffer.size, size);
        assert_true(buffer.capacity >= size);
        if (size != 0)
            assert_memory_equal(buffer.data, model, size);
    }
    buffer_fini(&buffer);
    assert_null(buffer.data);
}

static void long_texts_are_printed_whole(void **state)
{
    struct buffer buffer = {0};

    (void)state;
    for (int width = 0; width < 1000; width++) {
        buffer_clear(&buffer);
        buffer_shrink(&buffer);
        buffer_printf(&buffer, "%*d", width, 7);
        assert_int_equal(buffer.size, width == 0 ? 1 : width);
        assert_int_equal(buffer.data[buffer.size - 1], '7');
    }
    buffer_fini(&buffer);
}

static void take_hands_over(void **state)
{
    struct buffer buffer = {0};
    size_t size;
    char *text = buffer_take(&buffer, &size);

    (void)state;
    assert_string_equal(text, "");
    assert_int_equal(size, 0);
    mem_free(text);
    buffer_append_slice(&buffer, SLICE("abc"));
    text = buffer_take(&buffer, &size);
    assert_string_equal(text, "abc");
    assert_int_equal(size, 3);
    assert_null(buffer.data);
    mem_free(text);
}

static void try_reserve_can_fail(void **state)
{
    struct buffer buffer = {0};

    (void)state;
    buffer_append_text(&buffer, "abc");
    assert_true(fault_arm(FAULT_MEMORY, 0));
    assert_false(buffer_try_reserve(&buffer, 1000));
    assert_true(fault_fired());
    fault_disarm();
    assert_int_equal(buffer.size, 3);
    assert_string_equal(buffer_text(&buffer), "abc");
    assert_false(buffer_try_reserve(&buffer, SIZE_MAX - 2));
    assert_true(buffer_try_reserve(&buffer, 1000));
    assert_true(buffer.capacity >= 1003);
    buffer_fini(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_an_array),
        cmocka_unit_test(long_texts_are_printed_whole),
        cmocka_unit_test(take_hands_over),
        cmocka_unit_test(try_reserve_can_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
