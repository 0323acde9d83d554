#include "base/fork_guard.h"

#ifdef __SANITIZE_ADDRESS__
#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

enum { ROUNDS_MOST = 2000, ROUND_US = 200 }; /* threads that base/thread.h did not start hold no fork for ever */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static unsigned settled_count; /* under the lock: threads that have begun and do not end yet, beside the first */
static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER; /* of those that hold the lock as readers */

void fork_guard_enter(void)
{
    (void)pthread_rwlock_rdlock(&lock);
}

void fork_guard_leave(void)
{
    (void)pthread_rwlock_unlock(&lock);
}

static void count(int difference)
{
    fork_guard_enter();
    (void)pthread_mutex_lock(&count_lock);
    settled_count += (unsigned)difference;
    (void)pthread_mutex_unlock(&count_lock);
    fork_guard_leave();
}

void fork_guard_thread_begun(void)
{
    count(1);
}

void fork_guard_thread_ends(void)
{
    count(-1);
}

static unsigned thread_count(void)
{
    DIR *folder = opendir("/proc/self/task");
    const struct dirent *entry;
    unsigned threads = 0;

    if (folder == NULL)
        return 0;
    while ((entry = readdir(folder)) != NULL)
        threads += entry->d_name[0] != '.';
    (void)closedir(folder);
    return threads;
}

static void before_fork(void)
{
    for (int round = 1;; round++) {
        (void)pthread_rwlock_wrlock(&lock);
        if (thread_count() == settled_count + 1 || round == ROUNDS_MOST)
            return;
        (void)pthread_rwlock_unlock(&lock); /* who begins or ends may want it */
        (void)usleep(ROUND_US);
    }
}

/* The child has one thread, of another number than the lock's owner, who alone could release it. */
static void after_fork(void)
{
    static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

    lock = fresh;
    settled_count = 0;
}

__attribute__((constructor)) static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, fork_guard_leave, after_fork);
}
#endif
