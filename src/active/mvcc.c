#include "active/mvcc.h"

#include "base/assert.h"

bool mvcc_take(struct mvcc_clock *clock, uint64_t mvcc, uint64_t *stamp)
{
    const uint64_t counter = mvcc & ((UINT64_C(1) << MVCC_COUNTER_BITS) - 1);
    const uint64_t carried = (mvcc >> MVCC_COUNTER_BITS << STAMP_COUNTER_BITS) + counter;

    assert(mvcc_is_possible(mvcc));
    if (mvcc <= clock->mvcc)
        return false;
    clock->mvcc = mvcc;
    clock->stamp = MAX(carried, clock->stamp + 1);
    *stamp = clock->stamp;
    return true;
}

void mvcc_learn(struct mvcc_clock *clock, uint64_t mvcc, uint64_t stamp)
{
    clock->mvcc = MAX(clock->mvcc, mvcc);
    clock->stamp = MAX(clock->stamp, stamp);
}
