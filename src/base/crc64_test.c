#include "base/crc64.h"

#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void check_value(void **state)
{
    (void)state;
    assert_int_equal(crc64_update(0, "123456789", 9), UINT64_C(0xe9c6d914c4b8d9ca));
    assert_int_equal(crc64_update(77, "", 0), 77);
}

/* Bit by bit, as the definition says. */
static uint64_t slow(uint64_t crc, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? UINT64_C(0x95ac9329ac4bc9b5) : 0);
    }
    return crc;
}

static void pieces_make_the_whole(void **state)
{
    struct random random;
    unsigned char bytes[300], zeros[300] = {0};

    (void)state;
    random = test_random("crc64");
    for (int round = 0; round < 2000; round++) {
        size_t size = random_below(&random, sizeof(bytes) + 1), cut = random_below(&random, size + 1);
        uint64_t whole, front;

        for (size_t i = 0; i < size; i++)
            bytes[i] = (unsigned char)random_below(&random, 256);
        whole = slow(0, bytes, size);
        front = crc64_update(0, bytes, cut);
        assert_int_equal(crc64_update(0, bytes, size), whole);
        assert_int_equal(crc64_update(front, bytes + cut, size - cut), whole);
        assert_int_equal(crc64_shift(front, size - cut), slow(front, zeros, size - cut));
        assert_int_equal(crc64_shift(front, size - cut) ^ crc64_update(0, bytes + cut, size - cut), whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_value),
        cmocka_unit_test(pieces_make_the_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
