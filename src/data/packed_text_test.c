#include "data/packed_text.h"

#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* Whether it is packed; then it is the same when it is unpacked. */
static bool is_packed(struct slice text)
{
    char scratch[NUMBER_I64_SPACE];
    const void *item = packed_text_make(text);

    if (item == NULL)
        return false;
    assert_true(packed_text_is(item));
    assert_true((uint64_t)(uintptr_t)item < UINT64_C(1) << 48);
    assert_true(slice_equal(packed_text_get(item, scratch), text));
    return true;
}

static void texts_are_packed_or_not(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool is_packed;
    } texts[] = {
        {"", 0, true},
        {"\0", 1, true},
        {"\0\0\0\0\0", 5, true},
        {"a\0", 2, true},
        {"\xff\xff\xff\xff\xff", 5, true},
        {"-0", 2, true},
        {"00001", 5, true},
        {"abcdef", 6, false},
        {"123456", 6, true},
        {"012345", 6, false},
        {"+12345", 6, false},
        {"-12345", 6, true},
        {"-00000", 6, false},
        {"12345 ", 6, false},
        {"12345\0", 6, false},
        {"1234.5", 6, false},
        {"35184372088831", 14, true},
        {"35184372088832", 14, false},
        {"-35184372088832", 15, true},
        {"-35184372088833", 15, false},
        {"9223372036854775807", 19, false},
        {"-9223372036854775808", 20, false},
    };

    (void)state;
    for (size_t i = 0; i < countof(texts); i++)
        assert_int_equal(is_packed(slice_make(texts[i].bytes, texts[i].size)), texts[i].is_packed);
}

static struct slice random_text(struct random *random, char *room)
{
    const int64_t number = (int64_t)random_u64(random) >> random_below(random, 64);
    size_t size = random_below(random, 9);

    if (random_below(random, 2) == 0)
        return slice_make(room, number_format_i64(room, number));
    for (size_t i = 0; i < size; i++)
        room[i] = (char)random_below(random, 256);
    return slice_make(room, size);
}

/* Two texts have one form if they are equal, and only then. */
static void each_has_a_form_of_its_own(void **state)
{
    struct random random = test_random("packed_text");
    char room[NUMBER_I64_SPACE], other_room[NUMBER_I64_SPACE];
    unsigned packed_count = 0;

    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        const struct slice text = random_text(&random, room);
        struct slice other = text;

        packed_count += is_packed(text);
        if (random_below(&random, 2) == 0 || text.size == 0) {
            other = random_text(&random, other_room);
        } else {
            memcpy(other_room, text.data, text.size);
            other_room[random_below(&random, text.size)] ^= (char)(1 << random_below(&random, 8));
            other.data = other_room;
        }
        if (packed_text_make(text) != NULL)
            assert_int_equal(packed_text_make(text) == packed_text_make(other), slice_equal(text, other));
    }
    assert_true(packed_count > 50000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_packed_or_not),
        cmocka_unit_test(each_has_a_form_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
