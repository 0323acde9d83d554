#include "persist/distinct.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"

void distinct_begin(struct distinct *distinct, uint64_t most)
{
    uint64_t size = 16;

    while (size < 2 * most)
        size *= 2;
    if (size != distinct->mask + 1) {
        mem_free(distinct->slots);
        distinct->slots = mem_alloc(size * sizeof(*distinct->slots));
        distinct->mask = size - 1;
    }
    memset(distinct->slots, 0, size * sizeof(*distinct->slots));
    distinct->left = most;
}

bool distinct_add(struct distinct *distinct, struct slice text)
{
    uint64_t at = hash_bytes(text.data, text.size) & distinct->mask;

    assert(text.data != NULL && distinct->left != 0);
    for (; distinct->slots[at].data != NULL; at = (at + 1) & distinct->mask) {
        if (slice_equal(distinct->slots[at], text))
            return false;
    }
    distinct->slots[at] = text;
    distinct->left--;
    return true;
}

void distinct_fini(struct distinct *distinct)
{
    mem_free(distinct->slots);
    *distinct = (struct distinct){0};
}
