/* The times. Any thread; monotonic and wall cost about 20 ns each (vdso), the processor times a system call. */
#pragma once

#include <pthread.h>
#include <stdint.h>

uint64_t clock_monotonic_ns(void); /* since some fixed moment; never jumps */
uint64_t clock_monotonic_us(void);
uint64_t clock_monotonic_ms(void);
int64_t clock_wall_us(void); /* since 1970, as the machine believes; jumps when it is set */
int64_t clock_wall_ms(void);

uint64_t clock_cpu_us(pthread_t thread); /* processor time of a thread; 0 if it has ended */
uint64_t clock_cpu_self_us(void);        /* of the calling thread */
uint64_t clock_cpu_process_us(void);     /* of all threads */
