/* Random numbers. `struct random` is fast and repeatable, for sampling and tests. Numbers that an attacker must not
 * guess come from random_secret. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state[4];
};

void random_seed(struct random *random, uint64_t seed); /* the same seed gives the same sequence on every machine */
uint64_t random_u64(struct random *random);
uint64_t random_below(struct random *random, uint64_t limit); /* 0 ... limit - 1, each equally likely; limit > 0 */
double random_unit(struct random *random);                    /* 0 <= x < 1, 53 bits */

struct random *random_thread(void); /* the calling thread's own, seeded from the system at its first use */

void random_secret(void *out, size_t size); /* from the system; without its random source the program ends */

/* Writes `count` lower-case hex digits from random_secret, no zero byte: for run ids and node names. */
void random_hex(char *out, size_t count);
