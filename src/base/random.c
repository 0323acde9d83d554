/* xoshiro256** by Blackman and Vigna (public domain), seeded through splitmix64 as its authors advise. */
#include "base/random.h"

#include "base/assert.h"
#include "base/panic.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

static uint64_t rotate_left(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void random_seed(struct random *random, uint64_t seed)
{
    for (unsigned i = 0; i < 4; i++)
        random->state[i] = splitmix(&seed);
}

uint64_t random_u64(struct random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* Multiply and take the upper half; the few low products that would make some results likelier are drawn again
 * (Lemire, "Fast Random Integer Generation in an Interval"). */
uint64_t random_below(struct random *random, uint64_t limit)
{
    __uint128_t product;

    assert(limit > 0);
    product = (__uint128_t)random_u64(random) * limit;
    if (UNLIKELY((uint64_t)product < limit)) {
        uint64_t unfair = (0 - limit) % limit;

        while ((uint64_t)product < unfair)
            product = (__uint128_t)random_u64(random) * limit;
    }
    return (uint64_t)(product >> 64);
}

double random_unit(struct random *random)
{
    return (double)(random_u64(random) >> 11) * 0x1p-53;
}

struct random *random_thread(void)
{
    static _Thread_local struct random own;
    static _Thread_local bool is_seeded;

    if (UNLIKELY(!is_seeded)) {
        uint64_t seed;

        random_secret(&seed, sizeof(seed));
        random_seed(&own, seed);
        is_seeded = true;
    }
    return &own;
}

void random_secret(void *out, size_t size)
{
    char *to = out;

    while (size > 0) {
        ssize_t got = getrandom(to, size, 0);

        if (got < 0) {
            if (errno == EINTR)
                continue;
            panic("Can't read random numbers from the system: %s", strerror(errno));
        }
        to += got;
        size -= (size_t)got;
    }
}

void random_hex(char *out, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[64];

    for (size_t i = 0; i < count; i++) {
        if (i % sizeof(bytes) == 0)
            random_secret(bytes, MIN(count - i, sizeof(bytes)));
        out[i] = digits[bytes[i % sizeof(bytes)] & 15];
    }
}
