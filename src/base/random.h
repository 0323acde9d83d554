/* Random numbers. `struct random` is fast and repeatable, for sampling and tests; what an enemy must not guess comes
 * from random_secret. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state[4];
};

void random_seed(struct random *random, uint64_t seed); /* the same seed, the same sequence, on every machine */
uint64_t random_u64(struct random *random);
uint64_t random_below(struct random *random, uint64_t limit); /* 0 ... limit - 1, each equally likely; limit > 0 */
double random_unit(struct random *random);                    /* 0 <= x < 1, 53 bits */

struct random *random_thread(void); /* this thread's own, seeded from the system at its first use */

void random_secret(void *out, size_t size); /* from the system; ends the program if there is none */

/* `count` lower-case hex digits from random_secret, no zero byte: run ids, node names. */
void random_hex(char *out, size_t count);
