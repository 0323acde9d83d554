/* Threads of the house: named, with signals blocked (the main thread handles them), counted in mem_used. */
#pragma once

#include "base/compiler.h"

#include <pthread.h>
#include <stdbool.h>

typedef void (*thread_fn)(void *argument);

#define THREAD_NAME_SPACE 16

struct thread {
    pthread_t id;
    bool started; /* and not joined yet */
    char name[THREAD_NAME_SPACE];
    unsigned index;
    thread_fn run;
    void *argument;
};

/* The struct must stay where it is until it is joined. Ends the program if there can be no more threads. */
void thread_start(struct thread *thread, const char *name, thread_fn run, void *argument);
void thread_join(struct thread *thread); /* fine if it was not started */

/* The main thread is the one that started the first of these, or asked for its index first. */
void thread_assert_main(void);
/* Likewise, and none that thread_start started runs. */
void thread_assert_only(void);

/* Called by each thread that thread_start started, at its begin and end. Before the first one; NULL: nothing. */
void thread_set_hooks(void (*begin)(void), void (*end)(void));

/* In a child that any thread forked: signals come to it as they came to the thread that started the first of these. */
void thread_restore_signals(void);

must_check bool thread_set_affinity(int cpu); /* the calling thread; false: not allowed here */
/* The same with a list: "0,2-5,8-14:2" (every second from 8 to 14). Threads started later inherit it. */
must_check bool thread_set_cpus(const char *list);
must_check bool thread_cpus_are_valid(const char *list);
void thread_set_name(const char *name); /* the calling thread */
unsigned thread_cpu_count(void);        /* what this process may use: affinity and cgroup quota, at least 1 */
unsigned thread_self_index(void);       /* 0: the first that asked (the main thread, if it asks first), 1, 2... */
