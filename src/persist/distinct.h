/* Checks that texts are all different, for containers from outside that are used unchanged. The texts must stay valid
 * while the struct is in use. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct distinct {
    struct slice *slots; /* open addressing; data NULL: free */
    uint64_t mask;
    uint64_t left; /* texts that may still be added */
};

/* Begins a check of at most so many texts. Zeroed memory is a valid struct; its memory is used again by the next
 * check. */
void distinct_begin(struct distinct *distinct, uint64_t most);
/* False: the text was added before; its data is not NULL. */
bool distinct_add(struct distinct *distinct, struct slice text);
void distinct_fini(struct distinct *distinct);
