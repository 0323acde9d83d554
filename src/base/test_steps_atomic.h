/* For the sources that are included after this file: calls steps_point (test_steps.h) before each use of atomics and
 * spinlocks. Fences do nothing. */
#pragma once

#include "base/fence.h"
#include "base/spinlock.h"
#include "base/test_steps.h"

#include <stdatomic.h>

static inline bool steps_lock_is_free(void *lock)
{
    return atomic_load(&((struct spinlock *)lock)->holder) == 0;
}

static inline bool steps_lock_try(struct spinlock *lock)
{
    steps_point();
    if (!steps_lock_is_free(lock))
        return false;
    atomic_store(&lock->holder, steps.current + 1);
    return true;
}

static inline void steps_lock_acquire(struct spinlock *lock)
{
    while (!steps_lock_try(lock))
        steps_wait(steps_lock_is_free, lock);
}

static inline void steps_lock_release(struct spinlock *lock)
{
    steps_point();
    atomic_store(&lock->holder, 0);
}

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and_explicit
#ifdef __clang__
#define atomic_load_explicit(object, order) (steps_point(), __c11_atomic_load(object, order))
#define atomic_store_explicit(object, value, order) (steps_point(), __c11_atomic_store(object, value, order))
#define atomic_exchange_explicit(object, value, order) (steps_point(), __c11_atomic_exchange(object, value, order))
#define atomic_fetch_or_explicit(object, value, order) (steps_point(), __c11_atomic_fetch_or(object, value, order))
#define atomic_fetch_and_explicit(object, value, order) (steps_point(), __c11_atomic_fetch_and(object, value, order))
#else
#define atomic_load_explicit(object, order) (steps_point(), __atomic_load_n(object, order))
#define atomic_store_explicit(object, value, order) (steps_point(), __atomic_store_n(object, value, order))
#define atomic_exchange_explicit(object, value, order) (steps_point(), __atomic_exchange_n(object, value, order))
#define atomic_fetch_or_explicit(object, value, order) (steps_point(), __atomic_fetch_or(object, value, order))
#define atomic_fetch_and_explicit(object, value, order) (steps_point(), __atomic_fetch_and(object, value, order))
#endif

#define spinlock_try steps_lock_try
#define spinlock_acquire_bounded(lock, spin_count) ((void)(spin_count), steps_lock_try(lock))
#define spinlock_acquire steps_lock_acquire
#define spinlock_release steps_lock_release
#define fence_heavy() ((void)0)
#define fence_pause steps_pause
