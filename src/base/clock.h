/* Clocks, for any thread. Reading the monotonic or the wall clock takes about 20 ns (vdso); reading processor time
 * takes a system call. */
#pragma once

#include <pthread.h>
#include <stdint.h>

uint64_t clock_monotonic_ns(void); /* since a fixed moment; never jumps */
uint64_t clock_monotonic_us(void);
uint64_t clock_monotonic_ms(void);
int64_t clock_wall_us(void); /* since 1970-01-01 UTC; jumps when the system's clock is set */
int64_t clock_wall_ms(void);

uint64_t clock_cpu_us(pthread_t thread); /* processor time of one thread; 0 if the thread has ended */
uint64_t clock_cpu_self_us(void);        /* processor time of the calling thread */
uint64_t clock_cpu_process_us(void);     /* processor time of all threads */
