/* Local numbers of origins: a version word has 8 bits for the origin of a key's last operation.
 *
 *     0          this start of this process (VERSION_OWN_ORIGIN)
 *     1 to 254   other origins
 *     255        origins that got no number, and those that lost theirs (ORIGINS_UNKNOWN)
 *
 * An origin keeps its number until it has ended and the frontier has passed all of its stamps. Then the number may go
 * to another origin, and from that moment on versions up to the frontier say nothing of who wrote them: for those
 * origins_of_version returns 0. So no walk over all keys is needed.
 *
 * When all numbers are taken, more origins share the last one; their versions are of an unknown origin. An origin gets
 * a number of its own when it is asked for again and one has become free.
 *
 * What an unknown origin costs: two places with the same stamp are in the order of their origins, and that cannot be
 * told any more. Whoever meets an operation with the stamp of such a version treats it as one whose place is gone: it
 * is late, the key is dirty (merge/record.h).
 *
 * Any thread reads and gives numbers. */
#pragma once

#include "base/spinlock.h"
#include "store/stamp.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { ORIGINS_UNKNOWN = VERSION_ORIGINS - 1 };

struct origins {
    struct spinlock lock;                    /* rank LOCK_ORIGINS */
    _Atomic uint64_t ids[VERSION_ORIGINS];   /* atomic: release; written under the lock; 0: nobody's */
    _Atomic uint64_t since[VERSION_ORIGINS]; /* atomic: relaxed, before the id: versions up to it are of others */
    _Atomic uint64_t unnumbered;             /* atomic: relaxed; how often the last number was given */
    uint64_t ended[VERSION_ORIGINS] GUARDED_BY(lock); /* not 0: it has ended, with this as its last stamp */
};

void origins_init(struct origins *origins);
/* This start. Before anything is stamped, with the gate owned. */
void origins_set_own(struct origins *origins, uint64_t id);

/* The number of an origin: the one that it has, or a new one, or ORIGINS_UNKNOWN. Costs a look at all numbers: who has
 * many entries of one origin keeps what it got, as long as that origin has not ended. */
unsigned origins_number(struct origins *origins, uint64_t id);
/* The origin that has this number now; 0: nobody. */
static inline uint64_t origins_id(const struct origins *origins, unsigned number)
{
    return atomic_load_explicit(&origins->ids[number], memory_order_acquire);
}
/* The origin of a version that is not 0; 0: it is not known any more. */
static inline uint64_t origins_of_version(const struct origins *origins, uint64_t version)
{
    const unsigned number = version_origin(version);
    const uint64_t id = origins_id(origins, number); /* before `since`: a new owner is never seen with an old one */

    return version_stamp(version) > atomic_load_explicit(&origins->since[number], memory_order_relaxed) ? id : 0;
}

/* The origin has ended and nothing of it can come any more; F has passed all of its stamps, of which `last` is the last
 * one. Its number may be given to another one. */
void origins_end(struct origins *origins, uint64_t id, uint64_t last);

struct origins_facts {
    unsigned used; /* numbers that origins have, this start's among them */
    unsigned free; /* that can be given */
    uint64_t unnumbered;
};
void origins_facts(struct origins *origins, struct origins_facts *facts);
