#include "store/slot.h"

#include <string.h>

/* Eight bytes a step. lanes[k][b]: what byte b contributes when k more bytes follow it: the sum of the contributions of
 * its bits, which are x^(16 + 8 k) to x^(23 + 8 k) modulo the polynomial. */
#define SUM(b, p0, p1, p2, p3, p4, p5, p6, p7)                                                                \
    ((b)&1 ? (p0) : 0) ^ ((b)&2 ? (p1) : 0) ^ ((b)&4 ? (p2) : 0) ^ ((b)&8 ? (p3) : 0) ^ ((b)&16 ? (p4) : 0) ^ \
        ((b)&32 ? (p5) : 0) ^ ((b)&64 ? (p6) : 0) ^ ((b)&128 ? (p7) : 0)
#define SUMS_4(b, ...) \
    SUM(b, __VA_ARGS__), SUM((b) + 1, __VA_ARGS__), SUM((b) + 2, __VA_ARGS__), SUM((b) + 3, __VA_ARGS__)
#define SUMS_16(b, ...) \
    SUMS_4(b, __VA_ARGS__), SUMS_4((b) + 4, __VA_ARGS__), SUMS_4((b) + 8, __VA_ARGS__), SUMS_4((b) + 12, __VA_ARGS__)
#define SUMS_64(b, ...)                                                                      \
    SUMS_16(b, __VA_ARGS__), SUMS_16((b) + 16, __VA_ARGS__), SUMS_16((b) + 32, __VA_ARGS__), \
        SUMS_16((b) + 48, __VA_ARGS__)
#define BYTES(...) \
    SUMS_64(0, __VA_ARGS__), SUMS_64(64, __VA_ARGS__), SUMS_64(128, __VA_ARGS__), SUMS_64(192, __VA_ARGS__)

static const uint16_t lanes[8][256] = {
    {BYTES(0x1021, 0x2042, 0x4084, 0x8108, 0x1231, 0x2462, 0x48c4, 0x9188)},
    {BYTES(0x3331, 0x6662, 0xccc4, 0x89a9, 0x0373, 0x06e6, 0x0dcc, 0x1b98)},
    {BYTES(0x3730, 0x6e60, 0xdcc0, 0xa9a1, 0x4363, 0x86c6, 0x1dad, 0x3b5a)},
    {BYTES(0x76b4, 0xed68, 0xcaf1, 0x85c3, 0x1ba7, 0x374e, 0x6e9c, 0xdd38)},
    {BYTES(0xaa51, 0x4483, 0x8906, 0x022d, 0x045a, 0x08b4, 0x1168, 0x22d0)},
    {BYTES(0x45a0, 0x8b40, 0x06a1, 0x0d42, 0x1a84, 0x3508, 0x6a10, 0xd420)},
    {BYTES(0xb861, 0x60e3, 0xc1c6, 0x93ad, 0x377b, 0x6ef6, 0xddec, 0xabf9)},
    {BYTES(0x47d3, 0x8fa6, 0x0f6d, 0x1eda, 0x3db4, 0x7b68, 0xf6d0, 0xfd81)},
};

static uint64_t load_big(const uint8_t *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static uint64_t fold(uint64_t word)
{
    uint64_t crc = 0;

    for (unsigned i = 0; i < 8; i++)
        crc ^= lanes[i][word >> (8 * i) & 0xff];
    return crc;
}

/* What is left over when the rest is whole words comes first: zeros in front of it change nothing, since the sum begins
 * with 0. */
uint16_t slot_crc16(struct slice bytes)
{
    const uint8_t *at = (const uint8_t *)bytes.data, *end = at + bytes.size;
    uint64_t crc = 0, word = 0;

    if (bytes.size % 8 != 0) {
        if (bytes.size > 8)
            word = load_big(at) >> (64 - 8 * (bytes.size % 8));
        for (size_t i = 0; bytes.size < 8 && i < bytes.size; i++)
            word = word << 8 | at[i];
        crc = fold(word);
    }
    for (at += bytes.size % 8; at < end; at += 8)
        crc = fold(load_big(at) ^ crc << 48);
    return (uint16_t)crc;
}

/* The part of the name that counts. */
static struct slice tag_of(struct slice key)
{
    const char *open = key.size != 0 ? memchr(key.data, '{', key.size) : NULL, *close;

    if (open == NULL)
        return key;
    open++;
    close = memchr(open, '}', (size_t)(key.data + key.size - open));
    return close != NULL && close != open ? slice_make(open, (size_t)(close - open)) : key;
}

uint32_t slot_of(struct slice key)
{
    return slot_crc16(tag_of(key)) % SLOT_COUNT;
}
