/* A spinlock of four bytes that knows its holder.
 *
 * It is for sections of microseconds without a system call. The lock word is 0 or the id of the holding thread, so
 * checking "do I hold it?" is one comparison and needs no debug build. A thread that must not wait long uses
 * spinlock_try or spinlock_acquire_bounded, and does something else if that fails. spinlock_acquire yields the
 * processor after a while, because the holder may not be running. */
#pragma once

#include "base/assert.h"
#include "base/compiler.h"
#include "base/fence.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The rank of a lock. A thread takes locks of ascending rank only. Locks of equal rank are allowed only for stripes, in
 * ascending index. Debug builds check this. */
enum lock_rank {
    LOCK_NONE = 0,
    LOCK_STRIPE,   /* one stripe of the keyspace */
    LOCK_NOTED,    /* a log of steps that the window has noted */
    LOCK_STRING,   /* a long string that snapshots need as it was */
    LOCK_LARGE,    /* the large values that snapshots need as they were */
    LOCK_REGISTRY, /* pub/sub, scripts, ACL, configuration strings */
    LOCK_PATTERNS, /* patterns of channels: also taken under a channel's lock, to give one message its place */
    LOCK_ROSTER,   /* a worker's list of cards */
    LOCK_ORIGINS,  /* numbers of origins, for versions of keys */
    LOCK_JOURNAL,  /* reserving space in the journal */
    LOCK_MAILBOX,  /* mail of a worker */
    LOCK_GATE,     /* the gate's own state: the last rank, held for a few instructions, also with stripes held */
    LOCK_RANK_COUNT
};

struct CAPABILITY("spinlock") spinlock {
    _Atomic uint32_t holder; /* atomic: acquire when taken, release when released */
    uint32_t rank;           /* const after init */
};

enum { SPINLOCK_NO_ID = -1 };               /* no lock is held with this id, and no free lock has it */
extern THREAD_LOCAL uint32_t spinlock_self; /* the calling thread's id, never 0; SPINLOCK_NO_ID: not yet assigned */
uint32_t spinlock_self_assign(void);

static inline uint32_t spinlock_self_id(void)
{
    return LIKELY(spinlock_self != (uint32_t)SPINLOCK_NO_ID) ? spinlock_self : spinlock_self_assign();
}

extern THREAD_LOCAL uint32_t spinlock_held_count;      /* number of locks that this thread holds */
extern THREAD_LOCAL bool spinlock_stripes_are_excused; /* see spinlock_excuse_stripes */
/* How often this thread has found a lock of this rank held, and waited. */
extern THREAD_LOCAL uint64_t spinlock_waits[LOCK_RANK_COUNT];

/* Debug builds check the order of ranks. */
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

/* Asserts that this thread holds no lock, not even an excused stripe. */
static inline void spinlock_assert_none_held(void)
{
    assert(spinlock_held_count == 0);
}

/* Call it before calls that may sleep or take long (files, mutexes, waking a thread). It asserts that this thread holds
 * no spinlock. A thread that runs a script holds stripes for long in any case: between the calls of
 * spinlock_excuse_stripes it may hold stripes here, but no other lock. Debug and sanitizer builds check it: a thread
 * that sleeps under a lock costs other threads time, but no data. */
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

/* Tries about `spin_count` times, with pauses. */
must_check bool spinlock_acquire_bounded(struct spinlock *lock, unsigned spin_count);
void spinlock_acquire_slow(struct spinlock *lock);

/* For a forked child that runs code of the server. It has one thread, so a lock that another thread held at the fork is
 * never released, and the data it guards may be half changed. After spinlock_alone, the process ends with this exit
 * code where it would wait for such a lock. */
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
