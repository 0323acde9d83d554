#include "base/hash.h"

#include "base/assert.h"
#include "base/random.h"
#include "base/sip.h"
#include "base/thread.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

struct hash_key hash_key; /* global: see the header */

static uint64_t read_64(const uint8_t *data)
{
    uint64_t word;

    memcpy(&word, data, sizeof(word));
    return word;
}

static uint64_t read_32(const uint8_t *data)
{
    uint32_t word;

    memcpy(&word, data, sizeof(word));
    return word;
}

/* Up to 7 bytes as a number: reads that overlap agree where they do. */
static inline uint64_t read_up_to_7(const uint8_t *data, size_t size)
{
    if (size >= 4)
        return read_32(data) | read_32(data + size - 4) << (8 * (size - 4));
    if (size == 0)
        return 0;
    return data[0] | (uint64_t)data[size / 2] << (8 * (size / 2)) | (uint64_t)data[size - 1] << (8 * (size - 1));
}

/* -------------------------------------------------------------------------------------------------------- XCBC -- */

#if defined(__x86_64__)

#define WITH_AES __attribute__((target("aes,sse2")))

WITH_AES static ALWAYS_INLINE __m128i block_at(const uint8_t *aligned)
{
    return _mm_load_si128((const __m128i *)(const void *)aligned);
}

/* The next round key of AES-128; the instruction computes half of it from the previous key. */
#define ROUND_KEY(key, round, constant) \
    round_key_set(key, round, _mm_aeskeygenassist_si128(block_at((key)->rounds[(round)-1]), constant))

WITH_AES static void round_key_set(struct hash_key *key, unsigned round, __m128i assist)
{
    __m128i word = _mm_shuffle_epi32(assist, _MM_SHUFFLE(3, 3, 3, 3)), last = block_at(key->rounds[round - 1]);

    for (unsigned i = 0; i < 4; i++) {
        word = _mm_xor_si128(word, last);
        last = _mm_slli_si128(last, 4);
    }
    _mm_store_si128((__m128i *)(void *)key->rounds[round], word);
}

static void xor_16(uint8_t *to, const uint8_t *a, const uint8_t *b)
{
    for (unsigned i = 0; i < 16; i++)
        to[i] = a[i] ^ b[i];
}

WITH_AES static void aes_key_init(struct hash_key *key, const uint8_t secret[HASH_SECRET_BYTES])
{
    memcpy(key->rounds[0], secret, 16);
    ROUND_KEY(key, 1, 0x01);
    ROUND_KEY(key, 2, 0x02);
    ROUND_KEY(key, 3, 0x04);
    ROUND_KEY(key, 4, 0x08);
    ROUND_KEY(key, 5, 0x10);
    ROUND_KEY(key, 6, 0x20);
    ROUND_KEY(key, 7, 0x40);
    ROUND_KEY(key, 8, 0x80);
    ROUND_KEY(key, 9, 0x1B);
    ROUND_KEY(key, 10, 0x36);
    xor_16(key->whole, secret + 16, key->rounds[0]);
    xor_16(key->padded, secret + 32, key->rounds[0]);
}

static bool aes_is_there(void)
{
    return __builtin_cpu_supports("aes");
}

WITH_AES static ALWAYS_INLINE __m128i block_load(const uint8_t *data)
{
    return _mm_loadu_si128((const __m128i *)(const void *)data);
}

/* AES of a block to which the first round key was added already. */
WITH_AES static ALWAYS_INLINE __m128i block_encrypt(const struct hash_key *key, __m128i block)
{
    block = _mm_aesenc_si128(block, block_at(key->rounds[1]));
    block = _mm_aesenc_si128(block, block_at(key->rounds[2]));
    block = _mm_aesenc_si128(block, block_at(key->rounds[3]));
    block = _mm_aesenc_si128(block, block_at(key->rounds[4]));
    block = _mm_aesenc_si128(block, block_at(key->rounds[5]));
    block = _mm_aesenc_si128(block, block_at(key->rounds[6]));
    block = _mm_aesenc_si128(block, block_at(key->rounds[7]));
    block = _mm_aesenc_si128(block, block_at(key->rounds[8]));
    block = _mm_aesenc_si128(block, block_at(key->rounds[9]));
    return _mm_aesenclast_si128(block, block_at(key->rounds[HASH_AES_ROUNDS]));
}

/* The last bytes of a message, a bit behind them, then zeros. */
WITH_AES static ALWAYS_INLINE __m128i block_padded(const uint8_t *data, size_t size)
{
    if (size >= 8)
        return _mm_set_epi64x((int64_t)(read_64(data + size - 8) >> (8 * (15 - size)) >> 8 | UINT64_C(0x80)
                                                                                                 << (8 * (size - 8))),
                              (int64_t)read_64(data));
    return _mm_cvtsi64_si128((int64_t)(read_up_to_7(data, size) | UINT64_C(0x80) << (8 * size)));
}

/* XORs up to 16 bytes, the last of a message, with the state after all blocks before, and encrypts the result. */
WITH_AES static ALWAYS_INLINE uint64_t block_finish(const struct hash_key *key, __m128i sum, const uint8_t *data,
                                                    size_t size)
{
    if (size == 16)
        sum = _mm_xor_si128(_mm_xor_si128(sum, block_load(data)), block_at(key->whole));
    else
        sum = _mm_xor_si128(_mm_xor_si128(sum, block_padded(data, size)), block_at(key->padded));
    return (uint64_t)_mm_cvtsi128_si64(block_encrypt(key, sum));
}

/* Apart, so that short keys do without loading the round keys beforehand. */
WITH_AES NOINLINE static uint64_t hash_aes_blocks(const struct hash_key *key, const uint8_t *data, size_t size)
{
    __m128i sum = _mm_setzero_si128();

    for (; size > 16; data += 16, size -= 16)
        sum = block_encrypt(key, _mm_xor_si128(_mm_xor_si128(sum, block_load(data)), block_at(key->rounds[0])));
    return block_finish(key, sum, data, size);
}

WITH_AES uint64_t hash_aes(const struct hash_key *key, const void *data, size_t size)
{
    return LIKELY(size <= 16) ? block_finish(key, _mm_setzero_si128(), data, size) : hash_aes_blocks(key, data, size);
}

#else

static bool aes_is_there(void)
{
    return false;
}

static void aes_key_init(struct hash_key *key, const uint8_t secret[HASH_SECRET_BYTES])
{
    (void)key;
    (void)secret;
}

uint64_t hash_aes(const struct hash_key *key, const void *data, size_t size)
{
    assert(key->has_aes);
    return hash_sip(key, data, size);
}

#endif

/* ----------------------------------------------------------------------------------------------------- SipHash -- */

uint64_t hash_sip(const struct hash_key *key, const void *data, size_t size)
{
    struct sip sip = sip_begin(key->sip);
    const uint8_t *at = data;
    size_t left = size;

    for (; left >= 8; at += 8, left -= 8)
        sip_word(&sip, read_64(at));
    sip_word(&sip, read_up_to_7(at, left) | (uint64_t)size << 56);
    return sip_end(&sip);
}

/* --------------------------------------------------------------------------------------------------------- key -- */

void hash_key_init(struct hash_key *key, const uint8_t secret[HASH_SECRET_BYTES])
{
    key->has_aes = aes_is_there();
    if (key->has_aes)
        aes_key_init(key, secret);
    memcpy(key->sip, secret + 48, sizeof(key->sip));
}

void hash_setup(void)
{
    uint8_t secret[HASH_SECRET_BYTES];

    thread_assert_main();
    random_secret(secret, sizeof(secret));
    hash_key_init(&hash_key, secret);
}
