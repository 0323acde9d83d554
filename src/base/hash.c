#include "base/hash.h"

#include "base/random.h"

uint8_t hash_secret[XXH3_SECRET_SIZE_MIN + 56]; /* global: see the header */

void hash_setup(void)
{
    random_secret(hash_secret, sizeof(hash_secret));
}
