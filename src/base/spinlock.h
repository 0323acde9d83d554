/* A spinlock of four bytes that knows its holder.
 *
 * For sections of microseconds without a system call. The lock word is 0 or the holder's id, so "is it mine?" is one
 * comparison and needs no debug build. Who must not wait long uses spinlock_try or spinlock_acquire_bounded and does
 * something else; spinlock_acquire gives the processor away after a while, because the holder may not be running. */
#pragma once

#include "base/assert.h"
#include "base/compiler.h"
#include "base/fence.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Where a lock stands in the order of the house; a thread takes locks of ascending rank only. Equal ranks are allowed
 * for stripes alone, in ascending index. Debug builds check. */
enum lock_rank {
    LOCK_NONE = 0,
    LOCK_STRIPE,   /* one stripe of the keyspace */
    LOCK_REGISTRY, /* pub/sub, scripts, ACL, configuration strings */
    LOCK_PATTERNS, /* the patterns of channels, while one message gets its place under its channel's lock */
    LOCK_ROSTER,   /* a worker's cards of connections */
    LOCK_JOURNAL,  /* reserving space in the journal */
    LOCK_MAILBOX,  /* a worker's mail */
    LOCK_GATE,     /* the gate's own state: a leaf, held for a few instructions, also under stripes */
    LOCK_RANK_COUNT
};

struct CAPABILITY("spinlock") spinlock {
    _Atomic uint32_t holder; /* atomic: acquire on taking, release on leaving */
    uint32_t rank;           /* const after init */
};

enum { SPINLOCK_NO_ID = -1 };               /* nobody holds a lock by it, and no free lock has it */
extern THREAD_LOCAL uint32_t spinlock_self; /* this thread's id, never 0; SPINLOCK_NO_ID: not asked for yet */
uint32_t spinlock_self_assign(void);

static inline uint32_t spinlock_self_id(void)
{
    return LIKELY(spinlock_self != (uint32_t)SPINLOCK_NO_ID) ? spinlock_self : spinlock_self_assign();
}

extern THREAD_LOCAL uint32_t spinlock_held_count;      /* this thread's locks */
extern THREAD_LOCAL bool spinlock_stripes_are_excused; /* see spinlock_excuse_stripes */

/* Debug builds check the order. */
#ifdef KEYDB_DEBUG
void spinlock_rank_acquired(const struct spinlock *lock);
void spinlock_rank_released(const struct spinlock *lock);
void spinlock_rank_assert_may_sleep(void);
#else
static inline void spinlock_rank_acquired(const struct spinlock *lock)
{
    (void)lock;
}
static inline void spinlock_rank_released(const struct spinlock *lock)
{
    (void)lock;
}
static inline void spinlock_rank_assert_may_sleep(void)
{
}
#endif

/* No lock is held by this thread, not even a stripe that is excused. */
static inline void spinlock_assert_none_held(void)
{
    assert(spinlock_held_count == 0);
}

/* Where a call begins that may sleep or take long (files, mutexes, waking a thread): no spinlock is held there. A
 * thread whose stripes are held for long anyway, since it runs a script, says so meanwhile: then it may hold those, and
 * nothing else. Debug and sanitizer builds check: who sleeps under a lock costs others time, and no data. */
static inline void spinlock_assert_may_sleep(void)
{
#ifdef KEYDB_DEBUG
    assert(spinlock_held_count == 0 || spinlock_stripes_are_excused);
    spinlock_rank_assert_may_sleep();
#endif
}

static inline void spinlock_excuse_stripes(bool excused)
{
    spinlock_stripes_are_excused = excused;
}

static inline void spinlock_init(struct spinlock *lock, enum lock_rank rank)
{
    atomic_init(&lock->holder, 0);
    lock->rank = rank;
}

static inline bool spinlock_is_mine(const struct spinlock *lock)
{
    return atomic_load_explicit(&lock->holder, memory_order_relaxed) == spinlock_self;
}

static inline void spinlock_assert_held(const struct spinlock *lock)
{
    assert(spinlock_is_mine(lock));
}

static inline must_check bool spinlock_try(struct spinlock *lock)
{
    uint32_t expected = 0;

    if (atomic_load_explicit(&lock->holder, memory_order_relaxed) != 0)
        return false;
    if (!atomic_compare_exchange_strong_explicit(&lock->holder, &expected, spinlock_self_id(), memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    spinlock_held_count++;
    spinlock_rank_acquired(lock);
    return true;
}

/* Tries, with pauses, about `spin_count` times. */
must_check bool spinlock_acquire_bounded(struct spinlock *lock, unsigned spin_count);
void spinlock_acquire_slow(struct spinlock *lock);

/* In a forked child that goes on to run code of the server: it has one thread, so a lock that another thread held at
 * the fork is never released, and what it guards may be half changed. From here on the process ends, with this exit
 * code, where it would wait for such a lock. */
enum { SPINLOCK_FORSAKEN = 3 };
void spinlock_alone(void);

static inline void spinlock_acquire(struct spinlock *lock) ACQUIRES(lock) NO_THREAD_SAFETY_ANALYSIS
{
    if (LIKELY(spinlock_try(lock)))
        return;
    spinlock_acquire_slow(lock);
}

static inline void spinlock_release(struct spinlock *lock) RELEASES(lock) NO_THREAD_SAFETY_ANALYSIS
{
    spinlock_assert_held(lock);
    spinlock_rank_released(lock);
    spinlock_held_count--;
    atomic_store_explicit(&lock->holder, 0, memory_order_release);
}
