#include "store/slot.h"

#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* What CLUSTER KEYSLOT of redis-server says. */
static void known_keys_have_known_slots(void **state)
{
    static const struct {
        const char *key;
        uint32_t slot;
    } known[] = {
        {"", 0},
        {"a", 15495},
        {"ab", 13567},
        {"foo", 12182},
        {"1234567", 1750},
        {"12345678", 4117},
        {"123456789", 12739},
        {"somekey", 11058},
        {"key:000000000042", 7803},
        {"{user1000}.following", 3443},
        {"user1000", 3443},
        {"foo{}{bar}", 8363},
        {"foo{{bar}}zap", 4015},
        {"{bar", 4015},
        {"foo{bar}{zap}", 5061},
        {"bar", 5061},
        {"{}", 15257},
        {"}{", 12793},
        {"a}b{c}d", 7365},
        {"{", 4092},
        {"{a", 10276},
        {"\xff", 7920},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        assert_int_equal(slot_of(slice_from_text(known[i].key)), known[i].slot);
    assert_int_equal(slot_of(slice_make("\xff\x00\x80\x7f", 4)), 8003);
    assert_int_equal(slot_of(slice_make("\0\0", 2)), 0);
    assert_int_equal(slot_of(SLICE_EMPTY), 0);
    assert_int_equal(slot_crc16(SLICE("123456789")), 0x31C3);
}

/* Bit by bit, as the definition says. */
static uint16_t slow(const uint8_t *bytes, size_t size)
{
    uint16_t crc = 0;

    for (size_t i = 0; i < size; i++) {
        crc = (uint16_t)(crc ^ bytes[i] << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc << 1 ^ ((crc & 0x8000) != 0 ? 0x1021 : 0));
    }
    return crc;
}

static void any_size_is_as_the_definition_says(void **state)
{
    struct random random;
    uint8_t bytes[100];

    (void)state;
    random = test_random("slot");
    for (int round = 0; round < 20000; round++) {
        size_t size = random_below(&random, sizeof(bytes) + 1);

        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)random_below(&random, 256);
        assert_int_equal(slot_crc16(slice_make(bytes, size)), slow(bytes, size));
    }
}

/* Braces are frequent: every way in which they can stand. */
static void only_the_tag_counts(void **state)
{
    struct random random;
    char name[12];

    (void)state;
    random = test_random("tags");
    for (int round = 0; round < 50000; round++) {
        size_t size = random_below(&random, sizeof(name) + 1), from = 0, to = size;

        for (size_t i = 0; i < size; i++)
            name[i] = "{}ab"[random_below(&random, 4)];
        for (size_t open = 0; open < size; open++) {
            size_t close = open + 1;

            if (name[open] != '{')
                continue;
            while (close < size && name[close] != '}')
                close++;
            if (close < size && close > open + 1) {
                from = open + 1;
                to = close;
            }
            break;
        }
        assert_int_equal(slot_of(slice_make(name, size)), slow((uint8_t *)name + from, to - from) & 16383);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_keys_have_known_slots),
        cmocka_unit_test(any_size_is_as_the_definition_says),
        cmocka_unit_test(only_the_tag_counts),
    };

    return cmocka_run_group_tests_name("slot", tests, NULL, NULL);
}
