/* For tests that use random numbers: prints the seed. TEST_SEED=number repeats a failed run. */
#pragma once

#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>

static inline struct random test_random(const char *test_name)
{
    const char *given = getenv("TEST_SEED");
    struct random random;
    uint64_t seed;

    random_secret(&seed, sizeof(seed));
    if (given != NULL)
        seed = strtoull(given, NULL, 10);
    printf("%s: TEST_SEED=%llu\n", test_name, (unsigned long long)seed);
    random_seed(&random, seed);
    return random;
}
