/* Are texts all different? For containers from outside, before they are taken over as they are. The texts stay where
 * they are while the struct is in use. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct distinct {
    struct slice *slots; /* open addressing; data NULL: free */
    uint64_t mask;
};

/* Zeroed memory is fine to begin with; memory is kept from one use to the next. */
void distinct_begin(struct distinct *distinct, uint64_t most);
bool distinct_add(struct distinct *distinct, struct slice text); /* false: it was there; data is not NULL */
void distinct_fini(struct distinct *distinct);
