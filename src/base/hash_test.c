#include "base/hash.h"

#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* RFC 3566, 4: the three keys that follow from 000102..0f, and the first halves of the MACs, read as we do. */
static const uint8_t xcbc_secret[HASH_SECRET_BYTES] = {
    0xC3, 0x52, 0x80, 0x57, 0x54, 0x23, 0x7F, 0x31, 0x1A, 0xC0, 0xFF, 0xF4, 0xE3, 0xE0, 0x3E, 0x78,
    0xBD, 0x86, 0x2F, 0xFB, 0x97, 0xAD, 0x2F, 0xB8, 0xF8, 0xB8, 0x91, 0xF6, 0x03, 0x2F, 0x36, 0xCB,
    0xC1, 0xA7, 0xAB, 0xA1, 0xA2, 0x3A, 0x94, 0x06, 0x58, 0x07, 0xA0, 0x8C, 0xC8, 0xEE, 0xD0, 0x6E,
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, /* SipHash's */
};

struct known {
    size_t size;   /* of 00 01 02 ... */
    uint64_t hash; /* as bytes, first to last */
};

static void check_known(uint64_t (*hash)(const struct hash_key *, const void *, size_t), const struct known *known,
                        size_t count)
{
    CACHE_ALIGNED struct hash_key key;
    uint8_t bytes[256];

    hash_key_init(&key, xcbc_secret);
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)i;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(__builtin_bswap64(hash(&key, bytes, known[i].size)), known[i].hash);
}

static void short_keys_get_their_xcbc_mac(void **state)
{
    static const struct known known[] = {
        {0, UINT64_C(0x75F0251D528AC01C)},  {3, UINT64_C(0x5B376580AE2F19AF)},  {16, UINT64_C(0xD2A246FA349B68A7)},
        {20, UINT64_C(0x47F51B4564966215)}, {32, UINT64_C(0xF54F0EC8D2B9F3D3)}, {34, UINT64_C(0xBECBB3BCCDB518A3)},
    };
    CACHE_ALIGNED struct hash_key key;

    (void)state;
    hash_key_init(&key, xcbc_secret);
    if (!key.has_aes)
        skip();
    check_known(hash_aes, known, countof(known));
}

/* As OpenSSL tells: openssl mac -macopt size:8 -macopt c-rounds:1 -macopt d-rounds:3 ... SIPHASH */
static void long_keys_get_their_siphash(void **state)
{
    static const struct known known[] = {
        {0, UINT64_C(0xDCC40F055801ACAB)},   {1, UINT64_C(0x93CA577DF39BF4C9)},  {3, UINT64_C(0xFBF7DDE7B80AF88B)},
        {7, UINT64_C(0x4011B19B987D92D3)},   {8, UINT64_C(0x8E9A298D11959036)},  {15, UINT64_C(0x5699512A6DD820D3)},
        {16, UINT64_C(0x668B907D1ADD4FCC)},  {63, UINT64_C(0xA8B3BBB76290199D)}, {64, UINT64_C(0x65604A4BEC9779F1)},
        {200, UINT64_C(0xEDFA0E8361E83FB7)},
    };

    (void)state;
    check_known(hash_sip, known, countof(known));
}

/* Every bit and the length matter, wherever the text stands, and nothing beside it does. */
static void each_bit_matters(uint64_t (*hash)(const struct hash_key *, const void *, size_t), size_t most)
{
    struct random random = test_random(__func__);
    uint8_t secret[HASH_SECRET_BYTES], text[160], copy[176];
    CACHE_ALIGNED struct hash_key key;

    random_secret(secret, sizeof(secret));
    hash_key_init(&key, secret);
    for (size_t size = 0; size <= most; size++) {
        size_t shift = random_below(&random, 16);
        uint64_t whole;

        random_secret(text, sizeof(text));
        random_secret(copy, sizeof(copy));
        memcpy(copy + shift, text, size);
        whole = hash(&key, text, size);
        assert_int_equal(hash(&key, copy + shift, size), whole);
        assert_int_not_equal(hash(&key, text, size + 1), whole);
        for (size_t bit = 0; bit < size * 8; bit++) {
            copy[shift + bit / 8] ^= (uint8_t)(1U << bit % 8);
            assert_int_not_equal(hash(&key, copy + shift, size), whole);
            copy[shift + bit / 8] ^= (uint8_t)(1U << bit % 8);
        }
        memset(text, 0, sizeof(text));
        assert_int_not_equal(hash(&key, text, size), hash(&key, text, size + 1)); /* zeros are no padding */
    }
}

static void each_bit_and_the_length_matter(void **state)
{
    (void)state;
    if (hash_key.has_aes)
        each_bit_matters(hash_aes, HASH_AES_MOST);
    each_bit_matters(hash_sip, 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_keys_get_their_xcbc_mac),
        cmocka_unit_test(long_keys_get_their_siphash),
        cmocka_unit_test(each_bit_and_the_length_matter),
    };

    hash_setup();
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
