#include "script/script_watch.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/fence.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "base/tick.h"
#include "server/core/worker.h"
#include "server/durable/child.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_EVERY_MS = 10, LOOKS_IN_VAIN_MOST = 200 };

/* A worker's. */
struct watched {
    _Atomic uint64_t since_tick; /* atomic, relaxed: 0: no script runs; pairs with `sleeps` by fences */
    _Atomic pid_t thread;        /* atomic: release; 0: it has run none yet */
};

static struct watched all[WORKERS_MOST + 1]; /* by index of the worker; the last is of who loads data */

static struct {
    void (*ring)(void); /* const while the thread runs */
    struct thread thread;
    pthread_mutex_t lock; /* no other lock is taken with it */
    pthread_cond_t changed;
    _Atomic bool sleeps; /* atomic: relaxed; written with `lock`; a thread that begins a script wakes it */
    bool ends GUARDED_BY(lock);
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void on_signal(int signal_number)
{
    int error = errno;

    (void)signal_number;
    watch.ring();
    errno = error;
}

/* True: a script runs. */
static bool look_at_all(void)
{
    const uint64_t now = tick_now();
    bool found = false;

    for (unsigned i = 0; i < countof(all); i++) {
        uint64_t since = atomic_load_explicit(&all[i].since_tick, memory_order_relaxed);

        if (since == 0)
            continue;
        found = true;
        if (now > since && tick_to_ns(now - since) > LOOK_EVERY_MS * UINT64_C(1000000))
            (void)syscall(SYS_tgkill, getpid(), atomic_load_explicit(&all[i].thread, memory_order_acquire), SIGURG);
    }
    return found;
}

static bool ends(void)
{
    bool now;

    mutex_lock(&watch.lock);
    now = watch.ends;
    mutex_unlock(&watch.lock);
    return now;
}

/* Until a script begins, or the end. */
static void sleep_until_wanted(void)
{
    mutex_lock(&watch.lock);
    atomic_store_explicit(&watch.sleeps, true, memory_order_relaxed);
    fence_heavy(); /* from here on, threads that begin a script see this */
    if (look_at_all())
        atomic_store_explicit(&watch.sleeps, false, memory_order_relaxed);
    while (atomic_load_explicit(&watch.sleeps, memory_order_relaxed) && !watch.ends)
        pthread_cond_wait(&watch.changed, &watch.lock);
    mutex_unlock(&watch.lock);
}

static void watch_scripts(void *argument)
{
    const struct timespec step = {.tv_nsec = LOOK_EVERY_MS * 1000000L};
    unsigned in_vain = 0;

    (void)argument;
    while (!ends()) {
        in_vain = look_at_all() ? 0 : in_vain + 1;
        if (in_vain > LOOKS_IN_VAIN_MOST) {
            sleep_until_wanted();
            in_vain = 0;
        }
        nanosleep(&step, NULL);
    }
}

/* The first script of all starts the thread. */
static void wake(void)
{
    mutex_lock(&watch.lock);
    if (!watch.thread.started)
        thread_start(&watch.thread, "script-watch", watch_scripts, NULL);
    atomic_store_explicit(&watch.sleeps, false, memory_order_relaxed);
    pthread_cond_signal(&watch.changed);
    mutex_unlock(&watch.lock);
}

void script_watch_begin(const struct worker *worker)
{
    struct watched *own = &all[worker->index];

    worker_assert_self(worker);
    assert(worker->index < countof(all) && !child_is_copy());
    if (UNLIKELY(atomic_load_explicit(&own->thread, memory_order_relaxed) == 0))
        atomic_store_explicit(&own->thread, (pid_t)syscall(SYS_gettid), memory_order_release);
    atomic_store_explicit(&own->since_tick, tick_now(), memory_order_relaxed);
    fence_light();
    if (UNLIKELY(atomic_load_explicit(&watch.sleeps, memory_order_relaxed)))
        wake();
}

void script_watch_end(const struct worker *worker)
{
    worker_assert_self(worker);
    assert(atomic_load_explicit(&all[worker->index].thread, memory_order_relaxed) != 0);
    atomic_store_explicit(&all[worker->index].since_tick, 0, memory_order_relaxed);
}

void script_watch_setup(void (*ring)(void))
{
    struct sigaction action;

    thread_assert_main();
    assert(!watch.thread.started);
    watch.ring = ring;
    atomic_store_explicit(&watch.sleeps, true, memory_order_relaxed);
    memset(&action, 0, sizeof(action));
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    action.sa_handler = on_signal;
    sigaction(SIGURG, &action, NULL);
}

void script_watch_teardown(void)
{
    gate_assert_main_alone();
    mutex_lock(&watch.lock);
    watch.ends = true;
    pthread_cond_signal(&watch.changed);
    mutex_unlock(&watch.lock);
    thread_join(&watch.thread);
}
