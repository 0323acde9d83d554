#include "data/bits.h"

#include "base/mem.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MOST_BYTES = 300 };

/* The dumb model: one byte a bit. */
struct model {
    bool bits[MOST_BYTES * 16];
    size_t size; /* bytes */
};

static void model_of(struct model *model, struct slice bytes)
{
    memset(model->bits, 0, sizeof(model->bits));
    model->size = bytes.size;
    for (size_t i = 0; i < bytes.size * 8; i++)
        model->bits[i] = ((unsigned char)bytes.data[i / 8] & (0x80 >> i % 8)) != 0;
}

/* In a block of exactly its size, so that the sanitizer sees a step too far. Runs of equal bytes, to be skipped. */
static struct slice random_bytes(struct random *random, size_t most)
{
    size_t size = (size_t)random_below(random, most + 1);
    char *bytes = mem_alloc(size + 1);
    char *exact;

    for (size_t i = 0; i < size;) {
        size_t run = (size_t)random_below(random, random_below(random, 2) == 0 ? 3 : 120) + 1;
        uint64_t kind = random_below(random, 4);

        for (; run != 0 && i < size; run--, i++)
            bytes[i] = kind == 0 ? 0 : kind == 1 ? (char)0xff : (char)random_u64(random);
    }
    exact = size == 0 ? NULL : mem_copy(bytes, size);
    if (exact != NULL)
        exact = mem_realloc(exact, size);
    mem_free(bytes);
    return slice_make(exact, size);
}

static void free_bytes(struct slice bytes)
{
    char *gone;

    memcpy(&gone, &bytes.data, sizeof(gone));
    mem_free(gone);
}

static void ranges_are_counted_and_searched_as_the_model_does(void **state)
{
    struct random random = test_random("ranges");
    static struct model model;

    (void)state;
    for (int turn = 0; turn < 3000; turn++) {
        struct slice bytes = random_bytes(&random, MOST_BYTES);

        model_of(&model, bytes);
        for (int i = 0; i < 20; i++) {
            uint64_t first = random_below(&random, bytes.size * 8 + 1);
            uint64_t count = random_below(&random, bytes.size * 8 - first + 1), sum = 0;
            int64_t found[2] = {-1, -1};

            for (uint64_t at = first + count; at-- > first;) {
                sum += model.bits[at];
                found[model.bits[at]] = (int64_t)at;
            }
            assert_int_equal(bits_count(bytes, first, count), sum);
            assert_int_equal(bits_find(bytes, false, first, count), found[0]);
            assert_int_equal(bits_find(bytes, true, first, count), found[1]);
        }
        free_bytes(bytes);
    }
}

static void single_bits_are_set_and_read(void **state)
{
    struct random random = test_random("single bits");
    static struct model model;
    char bytes[64] = {0};

    (void)state;
    model_of(&model, slice_make(bytes, sizeof(bytes)));
    for (int turn = 0; turn < 20000; turn++) {
        uint64_t at = random_below(&random, sizeof(bytes) * 8);
        bool value = random_below(&random, 2) != 0;

        assert_int_equal(bits_get(slice_make(bytes, sizeof(bytes)), at), model.bits[at]);
        bits_set(bytes, at, value);
        model.bits[at] = value;
        assert_int_equal(bits_get(slice_make(bytes, sizeof(bytes)), at), value);
    }
    for (size_t at = 0; at < sizeof(bytes) * 8; at++)
        assert_int_equal(bits_get(slice_make(bytes, sizeof(bytes)), at), model.bits[at]);
    assert_false(bits_get(slice_make(bytes, sizeof(bytes)), sizeof(bytes) * 8));
    assert_false(bits_get(SLICE_EMPTY, 0));
}

static unsigned char byte_at(struct slice bytes, size_t at)
{
    return at < bytes.size ? (unsigned char)bytes.data[at] : 0;
}

/* Bit by bit: how many of the sources have it, and whether the first one does. */
static bool combined_bit(enum bits_operation operation, const struct slice *sources, size_t count, uint64_t at)
{
    const bool first = bits_get(sources[0], at);
    size_t have = 0;

    for (size_t i = 0; i < count; i++)
        have += bits_get(sources[i], at);
    switch (operation) {
    case BITS_AND:
        return have == count;
    case BITS_OR:
        return have != 0;
    case BITS_XOR:
        return have % 2 == 1;
    case BITS_DIFF:
        return first && have == 1;
    case BITS_DIFF1:
        return !first && have != 0;
    case BITS_ANDOR:
        return first && have > 1;
    case BITS_ONE:
        return have == 1;
    }
    return false;
}

static void strings_of_different_sizes_are_combined(void **state)
{
    struct random random = test_random("combine");

    (void)state;
    for (int turn = 0; turn < 400; turn++) {
        enum bits_operation operation = (enum bits_operation)random_below(&random, BITS_ONE + 1);
        struct slice sources[5];
        const size_t least = operation == BITS_DIFF1 || operation == BITS_ANDOR ? 2 : 1;
        size_t count = (size_t)random_below(&random, countof(sources) + 1 - least) + least, size = 0;
        char *out;

        for (size_t i = 0; i < count; i++) {
            sources[i] = random_bytes(&random, turn % 8 == 0 ? 20000 : MOST_BYTES);
            size = MAX(size, sources[i].size);
        }
        out = mem_alloc(MAX(size, 1U));
        bits_combine(operation, out, size, sources, count);
        for (uint64_t at = 0; at < size * 8; at++)
            assert_int_equal(bits_get(slice_make(out, size), at), combined_bit(operation, sources, count, at));
        bits_invert(out, sources[0]);
        for (size_t at = 0; at < sources[0].size; at++)
            assert_int_equal((unsigned char)out[at], (unsigned char)~byte_at(sources[0], at));
        for (size_t i = 0; i < count; i++)
            free_bytes(sources[i]);
        mem_free(out);
    }
}

/* Lowest bit first, as a shifted string counts. */
static bool low_bit(struct slice bytes, uint64_t at)
{
    return (byte_at(bytes, at / 8) >> at % 8 & 1) != 0;
}

static void shifted_strings_are_numbers_times_powers_of_two(void **state)
{
    struct random random = test_random("shift");

    (void)state;
    for (int turn = 0; turn < 3000; turn++) {
        struct slice source = random_bytes(&random, 60);
        int64_t places = (int64_t)random_below(&random, 1201) - 600;
        size_t size = bits_shifted_size(source.size, places);
        char *out = mem_alloc(MAX(size, 1U));

        if (places >= 0)
            assert_int_equal(size, source.size + (size_t)(places + 7) / 8);
        else
            assert_int_equal(size, MAX((int64_t)source.size - -places / 8, 0));
        bits_shift(out, source, places);
        for (uint64_t at = 0; at < size * 8; at++) {
            int64_t from = (int64_t)at - places;

            assert_int_equal(low_bit(slice_make(out, size), at), from >= 0 && low_bit(source, (uint64_t)from));
        }
        mem_free(out);
        free_bytes(source);
    }
}

static void check_shift(struct slice source, int64_t places, struct slice expected)
{
    char out[32];
    size_t size = bits_shifted_size(source.size, places);

    assert_int_equal(size, expected.size);
    bits_shift(out, source, places);
    if (size != 0)
        assert_memory_equal(out, expected.data, size);
}

static void shifts_known_by_heart(void **state)
{
    (void)state;
    check_shift(SLICE("\xaa"), 4, SLICE("\xa0\x0a"));
    check_shift(SLICE("\xaa"), -3, SLICE("\x15"));
    check_shift(SLICE("\xff"), 1, SLICE("\xfe\x01"));
    check_shift(SLICE("\x00\xff"), -1, SLICE("\x80\x7f"));
    check_shift(SLICE("abcdefg"), 8,
                SLICE("\x00"
                      "abcdefg"));
    check_shift(SLICE("\x81\x02\x03\x84"), -8, SLICE("\x02\x03\x84"));
    check_shift(SLICE(" "), -8, SLICE(""));
    check_shift(SLICE(" "), -65, SLICE(""));
    check_shift(SLICE(""), 9, SLICE("\x00\x00"));
    check_shift(SLICE("abc"), INT64_MIN, SLICE(""));
}

static int64_t model_read(const struct model *model, const struct bits_field *field)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < field->width; i++)
        value = value << 1 | model->bits[field->at + i];
    if (field->is_signed && field->width < 64 && (value >> (field->width - 1) & 1) != 0)
        value |= UINT64_MAX << field->width;
    return (int64_t)value;
}

static void fields_are_read_and_written_anywhere(void **state)
{
    struct random random = test_random("fields");
    static struct model model;
    char bytes[40];

    (void)state;
    memset(bytes, 0x5a, sizeof(bytes));
    model_of(&model, slice_make(bytes, sizeof(bytes)));
    for (int turn = 0; turn < 50000; turn++) {
        struct bits_field field = {.is_signed = random_below(&random, 2) != 0};
        int64_t value = (int64_t)random_u64(&random);
        size_t shown;

        field.width = (uint8_t)(random_below(&random, field.is_signed ? 64 : 63) + 1);
        field.at = random_below(&random, sizeof(bytes) * 8 - field.width + 1);
        assert_int_equal(bits_field_end_byte(&field), (field.at + field.width - 1) / 8);
        bits_field_write(bytes, &field, value);
        for (unsigned i = 0; i < field.width; i++)
            model.bits[field.at + i] = ((uint64_t)value >> (field.width - 1 - i) & 1) != 0;
        for (size_t at = 0; at < sizeof(bytes) * 8; at++)
            assert_int_equal(bits_get(slice_make(bytes, sizeof(bytes)), at), model.bits[at]);
        field.at = random_below(&random, sizeof(bytes) * 8);
        shown = (size_t)random_below(&random, sizeof(bytes) + 1);
        if (field.at + field.width <= shown * 8)
            assert_int_equal(bits_field_read(slice_make(bytes, shown), &field), model_read(&model, &field));
        else {
            static struct model cut;

            model_of(&cut, slice_make(bytes, shown));
            assert_int_equal(bits_field_read(slice_make(bytes, shown), &field), model_read(&cut, &field));
        }
    }
}

/* By counting on one's fingers: step by step, around the ends. */
static int64_t walk(const struct bits_field *field, enum bits_overflow overflow, int64_t old, int64_t increment,
                    bool *fits)
{
    int64_t span = INT64_C(1) << field->width, least = field->is_signed ? -(span / 2) : 0, most = least + span - 1;
    int64_t step = increment < 0 ? -1 : 1;

    *fits = true;
    for (; increment != 0; increment -= step) {
        int64_t next = old + step;

        if (next < least || next > most) {
            if (overflow == BITS_FAIL) {
                *fits = false;
                return 0;
            }
            if (overflow == BITS_SATURATE)
                return old;
            next = next < least ? most : least;
        }
        old = next;
    }
    return old;
}

static void small_fields_overflow_as_if_counted(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 2 * 4 * 3; kind++) {
        struct bits_field field = {.width = (uint8_t)(kind / 2 % 4 + 1), .is_signed = kind % 2 != 0};
        enum bits_overflow overflow = (enum bits_overflow)(kind / 8);
        int64_t span = INT64_C(1) << field.width, least = field.is_signed ? -(span / 2) : 0;

        for (int64_t old = least; old < least + span; old++) {
            for (int64_t increment = -40; increment <= 40; increment++) {
                int64_t result = 0, expected;
                bool fits;

                expected = walk(&field, overflow, old, increment, &fits);
                assert_int_equal(bits_field_add(&field, overflow, old, increment, &result), fits);
                if (fits)
                    assert_int_equal(result, expected);
            }
        }
    }
}

static void extreme_numbers_fit_or_not(void **state)
{
    const struct bits_field i64 = {.width = 64, .is_signed = true}, u63 = {.width = 63}, u8 = {.width = 8};
    int64_t result;

    (void)state;
    assert_true(bits_field_add(&i64, BITS_WRAP, INT64_MAX, 1, &result));
    assert_int_equal(result, INT64_MIN);
    assert_true(bits_field_add(&i64, BITS_SATURATE, INT64_MIN, INT64_MIN, &result));
    assert_int_equal(result, INT64_MIN);
    assert_false(bits_field_add(&i64, BITS_FAIL, INT64_MIN, -1, &result));
    assert_true(bits_field_add(&u63, BITS_WRAP, INT64_MAX, INT64_MAX, &result));
    assert_int_equal(result, INT64_MAX - 1);
    assert_true(bits_field_add(&u63, BITS_SATURATE, 1, INT64_MIN, &result));
    assert_int_equal(result, 0);
    assert_true(bits_field_fit(&u63, BITS_SATURATE, -1, &result));
    assert_int_equal(result, INT64_MAX);
    assert_true(bits_field_fit(&u8, BITS_WRAP, -5, &result));
    assert_int_equal(result, 251);
    assert_false(bits_field_fit(&u8, BITS_FAIL, 256, &result));
    assert_false(bits_field_fit(&u8, BITS_FAIL, -1, &result));
    assert_true(bits_field_fit(&i64, BITS_FAIL, INT64_MIN, &result));
    assert_int_equal(result, INT64_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_counted_and_searched_as_the_model_does),
        cmocka_unit_test(single_bits_are_set_and_read),
        cmocka_unit_test(strings_of_different_sizes_are_combined),
        cmocka_unit_test(shifted_strings_are_numbers_times_powers_of_two),
        cmocka_unit_test(shifts_known_by_heart),
        cmocka_unit_test(fields_are_read_and_written_anywhere),
        cmocka_unit_test(small_fields_overflow_as_if_counted),
        cmocka_unit_test(extreme_numbers_fit_or_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
