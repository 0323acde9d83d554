#include "base/crc64.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL UINT64_C(0x95ac9329ac4bc9b5) /* the lowest bit stands for the highest power */

enum { LANES = 16 };

/* lanes[k][b]: what byte b contributes when k more bytes follow it. Made once. */
static uint64_t lanes[LANES][256];
static pthread_once_t lanes_once = PTHREAD_ONCE_INIT;

static void make_lanes(void)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        uint64_t crc = byte;

        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
        lanes[0][byte] = crc;
    }
    for (unsigned lane = 1; lane < LANES; lane++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            uint64_t crc = lanes[lane - 1][byte];

            lanes[lane][byte] = (crc >> 8) ^ lanes[0][crc & 0xff];
        }
    }
}

static uint64_t load_little(const unsigned char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static uint64_t fold(uint64_t word, unsigned lane)
{
    uint64_t crc = 0;

    for (unsigned i = 0; i < 8; i++)
        crc ^= lanes[lane + 7 - i][word >> (8 * i) & 0xff];
    return crc;
}

uint64_t crc64_update(uint64_t crc, const void *data, size_t size)
{
    const unsigned char *at = data;

    (void)pthread_once(&lanes_once, make_lanes);
    for (; size >= LANES; size -= LANES, at += LANES)
        crc = fold(crc ^ load_little(at), 8) ^ fold(load_little(at + 8), 0);
    for (; size != 0; size--, at++)
        crc = (crc >> 8) ^ lanes[0][(crc ^ *at) & 0xff];
    return crc;
}

/* The product of two polynomials modulo ours, bits reflected: the highest bit is x^0. */
static uint64_t multiply(uint64_t a, uint64_t b)
{
    uint64_t product = 0;

    for (; a != 0; a <<= 1) {
        if (a >> 63 != 0)
            product ^= b;
        b = (b >> 1) ^ ((b & 1) != 0 ? POLYNOMIAL : 0);
    }
    return product;
}

uint64_t crc64_shift(uint64_t crc, uint64_t size)
{
    uint64_t power = UINT64_C(1) << (63 - 8); /* x^8: one byte */

    for (; size != 0; size >>= 1) {
        if ((size & 1) != 0)
            crc = multiply(crc, power);
        power = multiply(power, power);
    }
    return crc;
}
