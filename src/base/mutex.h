/* Mutexes, for threads that may sleep. Never lock one with a spinlock held. */
#pragma once

#include "base/spinlock.h"

#include <pthread.h>

static inline void mutex_lock(pthread_mutex_t *mutex)
{
    spinlock_assert_may_sleep();
    pthread_mutex_lock(mutex);
}

static inline void mutex_unlock(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
}
