#include "base/spinlock.h"

#include <sched.h>
#include <unistd.h>

THREAD_LOCAL uint32_t spinlock_self = (uint32_t)SPINLOCK_NO_ID; /* global: see the header, as of the three below */
THREAD_LOCAL uint32_t spinlock_held_count;                      /* global: as above */
THREAD_LOCAL bool spinlock_stripes_are_excused;                 /* global: as above */
THREAD_LOCAL uint64_t spinlock_waits[LOCK_RANK_COUNT];          /* global: as above */

uint32_t spinlock_self_assign(void)
{
    static _Atomic uint32_t last_id;

    spinlock_self = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    return spinlock_self;
}

#ifdef KEYDB_DEBUG
static _Thread_local unsigned held_counts[LOCK_RANK_COUNT];

void spinlock_rank_acquired(const struct spinlock *lock)
{
    for (unsigned rank = lock->rank + 1; rank < LOCK_RANK_COUNT; rank++)
        assert(held_counts[rank] == 0); /* a lock of higher rank is held: wrong order */
    assert(held_counts[lock->rank] == 0 || lock->rank == LOCK_STRIPE || lock->rank == LOCK_NONE);
    held_counts[lock->rank]++;
}

void spinlock_rank_released(const struct spinlock *lock)
{
    assert(held_counts[lock->rank] > 0);
    held_counts[lock->rank]--;
}

void spinlock_rank_assert_may_sleep(void)
{
    for (unsigned rank = LOCK_NONE; rank < LOCK_RANK_COUNT; rank++)
        assert(held_counts[rank] == 0 || rank == LOCK_STRIPE); /* stripes: if they are excused, as the caller knows */
}
#endif

static bool spin(struct spinlock *lock, unsigned spin_count)
{
    for (unsigned i = 0; i < spin_count; i++) {
        if (spinlock_try(lock))
            return true;
        fence_pause();
    }
    return false;
}

bool spinlock_acquire_bounded(struct spinlock *lock, unsigned spin_count)
{
    if (LIKELY(spin_count != 0) && spinlock_try(lock))
        return true;
    spinlock_waits[lock->rank]++;
    return spin(lock, spin_count);
}

static bool is_alone; /* written once, in the child, by its only thread */

void spinlock_alone(void)
{
    is_alone = true;
}

void spinlock_acquire_slow(struct spinlock *lock)
{
    assert(!spinlock_is_mine(lock)); /* it would wait for itself */
    if (is_alone)
        _exit(SPINLOCK_FORSAKEN);
    spinlock_waits[lock->rank]++;
    while (!spin(lock, 200))
        sched_yield();
}
