/* Threads with a name, with signals blocked (the main thread handles signals), and counted in mem_used. */
#pragma once

#include "base/compiler.h"

#include <pthread.h>
#include <stdbool.h>

typedef void (*thread_fn)(void *argument);

#define THREAD_NAME_SPACE 16

struct thread {
    pthread_t id;
    bool started; /* started and not yet joined */
    char name[THREAD_NAME_SPACE];
    unsigned index;
    thread_fn run;
    void *argument;
};

/* The struct must not move until it is joined. Ends the program if the system refuses another thread. */
void thread_start(struct thread *thread, const char *name, thread_fn run, void *argument);
void thread_join(struct thread *thread); /* does nothing if the thread was not started */

/* Asserts that the caller is the main thread: the thread that first called thread_start or thread_self_index. */
void thread_assert_main(void);
/* Asserts the same, and that no thread of thread_start is running. */
void thread_assert_only(void);

/* Each thread of thread_start calls `begin` and `end` at its start and end. Set the hooks before the first
 * thread_start. NULL: nothing is called. */
void thread_set_hooks(void (*begin)(void), void (*end)(void));

/* In a forked child, whichever thread forked it: restores the signal mask that the main thread had before the first
 * thread_start. */
void thread_restore_signals(void);

must_check bool thread_set_affinity(int cpu); /* the calling thread; false: the system refuses it */
/* The same with a list: "0,2-5,8-14:2" (every second CPU from 8 to 14). Threads started later inherit it. */
must_check bool thread_set_cpus(const char *list);
must_check bool thread_cpus_are_valid(const char *list);
void thread_set_name(const char *name); /* the calling thread */
unsigned thread_cpu_count(void);        /* CPUs that this process may use by affinity and cgroup quota, at least 1 */
unsigned thread_self_index(void);       /* 0: the first thread that asked, normally the main thread; then 1, 2... */
