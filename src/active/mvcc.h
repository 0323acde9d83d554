/* Our stamps and KeyDB's. Both are milliseconds with a counter below: of 14 bits here, of 20 bits in KeyDB's mvcc.
 *
 * A stamp of ours fits into an mvcc with room between two neighbours, and comes back as it was. The other way a counter
 * can be too large: KeyDB counts on in the same millisecond while its clock stands or jumped back. Then it is carried
 * into the milliseconds, and stamps go on ascending by one until the milliseconds have caught up. So the stamp of such
 * an operation depends on what was taken before it, and the mvcc, which stays with the operation, decides whether it is
 * here already. */
#pragma once

#include "base/compiler.h"
#include "store/stamp.h"

#include <stdbool.h>
#include <stdint.h>

enum { MVCC_COUNTER_BITS = 20 };

/* The last operation of one UUID. {0}: none. */
struct mvcc_clock {
    uint64_t mvcc, stamp;
};

static inline uint64_t mvcc_of_stamp(uint64_t stamp) /* of an origin of ours */
{
    return stamp << (MVCC_COUNTER_BITS - STAMP_COUNTER_BITS);
}

static inline uint64_t mvcc_to_stamp(uint64_t mvcc) /* the reverse */
{
    return mvcc >> (MVCC_COUNTER_BITS - STAMP_COUNTER_BITS);
}

static inline int64_t mvcc_wall_ms(uint64_t mvcc)
{
    return (int64_t)(mvcc >> MVCC_COUNTER_BITS);
}

/* False: no clock of a server gives it. Carrying leaves the stamps of the others possible, for a day at least. */
static inline bool mvcc_is_possible(uint64_t mvcc)
{
    return mvcc_wall_ms(mvcc) >= STAMP_LEAST_MS && mvcc_wall_ms(mvcc) < STAMP_MOST_MS - INT64_C(86400) * 1000;
}

/* Gives an operation of a KeyDB server its stamp, above that of the last one. False: its mvcc is not above that of the
 * last one, so it is here already; nothing changes. */
must_check bool mvcc_take(struct mvcc_clock *clock, uint64_t mvcc, uint64_t *stamp);
/* An operation came by another way, with the stamp that another node gave it. */
void mvcc_learn(struct mvcc_clock *clock, uint64_t mvcc, uint64_t stamp);
