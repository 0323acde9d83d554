/* SipHash (Aumasson and Bernstein, 2012), word by word: what hash.h and keyed digests (persist/digest.h) are made of.
 * One round for each word and three at the end. Any thread. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdint.h>
#include <string.h>

struct sip {
    uint64_t a, b, c, d;
};

static inline uint64_t sip_rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void sip_round(struct sip *sip)
{
    sip->a += sip->b;
    sip->c += sip->d;
    sip->b = sip_rotate(sip->b, 13) ^ sip->a;
    sip->d = sip_rotate(sip->d, 16) ^ sip->c;
    sip->a = sip_rotate(sip->a, 32) + sip->d;
    sip->c += sip->b;
    sip->b = sip_rotate(sip->b, 17) ^ sip->c;
    sip->d = sip_rotate(sip->d, 21) ^ sip->a;
    sip->c = sip_rotate(sip->c, 32);
}

static inline void sip_word(struct sip *sip, uint64_t word)
{
    sip->d ^= word;
    sip_round(sip);
    sip->a ^= word;
}

static inline struct sip sip_begin(const uint64_t key[2])
{
    return (struct sip){key[0] ^ UINT64_C(0x736F6D6570736575), key[1] ^ UINT64_C(0x646F72616E646F6D),
                        key[0] ^ UINT64_C(0x6C7967656E657261), key[1] ^ UINT64_C(0x7465646279746573)};
}

static inline uint64_t sip_end(struct sip *sip)
{
    sip->c ^= 0xFF;
    for (unsigned i = 0; i < 3; i++)
        sip_round(sip);
    return sip->a ^ sip->b ^ sip->c ^ sip->d;
}

/* --- a result of 128 bits, the same on every processor --- */

static inline uint64_t sip_little(const char *bytes, size_t size)
{
    uint64_t word = 0;

    memcpy(&word, bytes, size);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline struct sip sip_begin_long(const uint64_t key[2])
{
    struct sip sip = sip_begin(key);

    sip.b ^= 0xEE;
    return sip;
}

/* The size, then the bytes: so no two sequences of texts give the same words. */
static inline void sip_text(struct sip *sip, struct slice text)
{
    struct sip state = *sip; /* in registers */
    const char *at = text.data, *end = at + text.size / 8 * 8;
    size_t rest = text.size % 8;

    sip_word(&state, text.size);
    for (; at != end; at += 8)
        sip_word(&state, sip_little(at, 8));
    if (rest != 0 && text.size > 8)
        sip_word(&state, sip_little(end + rest - 8, 8) >> (8 * (8 - rest)));
    else if (rest != 0)
        sip_word(&state, sip_little(at, rest));
    *sip = state;
}

static inline void sip_end_long(struct sip *sip, uint64_t result[2])
{
    sip->c ^= 0xEE ^ 0xFF;
    result[0] = sip_end(sip);
    sip->b ^= 0xDD;
    for (unsigned i = 0; i < 3; i++)
        sip_round(sip);
    result[1] = sip->a ^ sip->b ^ sip->c ^ sip->d;
}
