/* Asymmetric memory fences: the side that runs often pays a compiler barrier, the rare side pays a system call.
 *
 * Two threads that each write one flag and then read the other's flag need a full fence between write and read, on both
 * sides. Examples are a released lock and its mask of waiters, and a worker's `inside` flag and the closed gate. One
 * side does this millions of times a second, the other almost never. With membarrier(2) the rare side pays for both.
 * Where the kernel refuses membarrier or lacks it, both sides use a full fence. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Call once, before the first thread that uses fences starts. */
void fence_setup(void);

extern bool fence_is_asymmetric; /* global: constant after fence_setup, read on the hot path */

/* A full fence of this processor. The sanitizers do not model C11 fences, so this is the instruction itself. */
static inline void fence_full(void)
{
#if defined(__x86_64__)
    __asm__ volatile("lock; addl $0, -8(%%rsp)" ::: "memory", "cc");
#elif defined(__aarch64__)
    __asm__ volatile("dmb ish" ::: "memory");
#else
    __sync_synchronize();
#endif
}

/* The frequent side: orders this thread's earlier writes before its later reads, for callers of fence_heavy. */
static inline void fence_light(void)
{
    if (LIKELY(fence_is_asymmetric))
        __asm__ volatile("" ::: "memory");
    else
        fence_full();
}

/* The rare side: when it returns, every other thread has passed a full fence since the call. Takes about 2 us. */
void fence_heavy(void);

/* Call it in each turn of a waiting loop: it tells the processor that another thread is expected to write. */
static inline void fence_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
