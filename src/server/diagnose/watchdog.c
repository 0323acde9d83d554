#include "server/diagnose/watchdog.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutex.h"
#include "base/stack_trace.h"
#include "base/thread.h"
#include "server/config/config.h"
#include "server/config/options_process.h"
#include "server/core/server.h"
#include "server/core/worker.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS_A_PERIOD = 4, ANSWER_MS = 1000 };

/* One for each worker. The letter is the worker's from when it is posted until it is opened, else the watchdog's. */
struct watch {
    struct mail mail;
    _Atomic bool is_opened; /* atomic: release by the worker, acquire by the watchdog */
    _Atomic pid_t thread;   /* atomic: relaxed; the worker's number, known when the first letter is opened */
    bool is_under_way;      /* owner: the watchdog, as all below */
    bool is_reported;       /* this stall has been written down */
    int64_t posted_us;
};

static struct {
    struct server *server; /* const while the thread runs */
    struct watch *watches; /* likewise */
    struct thread thread;  /* owner: the thread that owns the gate, or the main thread */
    pthread_mutex_t lock;  /* rank: below all others; guards `ends` */
    pthread_cond_t changed;
    bool ends GUARDED_BY(lock);
} watchdog = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void open_letter(struct worker *worker, struct mail *mail)
{
    struct watch *watch = container_of(mail, struct watch, mail);

    (void)worker;
    assert(!atomic_load_explicit(&watch->is_opened, memory_order_relaxed));
    atomic_store_explicit(&watch->thread, (pid_t)syscall(SYS_gettid), memory_order_relaxed);
    atomic_store_explicit(&watch->is_opened, true, memory_order_release);
}

static void post_letter(unsigned index)
{
    struct watch *watch = &watchdog.watches[index];
    struct mail *mail = &watch->mail;

    assert(!watch->is_under_way);
    *mail = (struct mail){.deliver = open_letter};
    watch->is_under_way = true;
    watch->is_reported = false;
    watch->posted_us = (int64_t)clock_monotonic_us();
    atomic_store_explicit(&watch->is_opened, false, memory_order_relaxed);
    worker_post(&watchdog.server->workers[index], &mail);
}

static void report(unsigned index)
{
    const struct watch *watch = &watchdog.watches[index];
    pid_t thread = atomic_load_explicit(&watch->thread, memory_order_relaxed);
    int64_t stalled_us = (int64_t)clock_monotonic_us() - watch->posted_us;

    log_from_signal("--- WATCHDOG TIMER EXPIRED ---");
    log_warning("Worker %u stuck in one loop iteration for %lld ms:", index, (long long)(stalled_us / 1000));
    if (thread == 0 || !stack_trace_thread(thread, ANSWER_MS))
        log_warning("No stack: the thread does not answer");
    log_from_signal("------");
}

static void look_at(unsigned index, int64_t period_ms)
{
    struct watch *watch = &watchdog.watches[index];
    int64_t now_us = (int64_t)clock_monotonic_us();

    if (watch->is_under_way && atomic_load_explicit(&watch->is_opened, memory_order_acquire))
        watch->is_under_way = false;
    if (!watch->is_under_way) {
        post_letter(index);
    } else if (!watch->is_reported && now_us - watch->posted_us > period_ms * 1000) {
        report(index);
        watch->is_reported = true;
    }
}

/* Until the time is over, the period is changed, or the end. False: the end. */
static bool wait_ms(int64_t ms)
{
    struct timespec until;
    bool goes_on;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    mutex_lock(&watchdog.lock);
    if (!watchdog.ends)
        pthread_cond_timedwait(&watchdog.changed, &watchdog.lock, &until);
    goes_on = !watchdog.ends;
    mutex_unlock(&watchdog.lock);
    return goes_on;
}

static void watch_workers(void *argument)
{
    int64_t period_ms;

    (void)argument;
    do {
        period_ms = OPTION_GET(option_watchdog_period);
        for (unsigned i = 0; period_ms != 0 && i < watchdog.server->worker_count; i++)
            look_at(i, period_ms);
    } while (wait_ms(period_ms != 0 ? MAX(period_ms / LOOKS_A_PERIOD, 1) : 3600 * 1000));
}

static const char *apply_period(const struct option_row *row)
{
    (void)row;
    gate_assert_alone(); /* or the workers do not run yet */
    if (OPTION_GET(option_watchdog_period) != 0 && !watchdog.thread.started)
        thread_start(&watchdog.thread, "watchdog", watch_workers, NULL);
    mutex_lock(&watchdog.lock);
    pthread_cond_signal(&watchdog.changed);
    mutex_unlock(&watchdog.lock);
    return NULL;
}

void watchdog_setup(struct server *server)
{
    pthread_condattr_t attributes;

    gate_assert_main_alone();
    assert(watchdog.server == NULL);
    watchdog.server = server;
    watchdog.watches = mem_alloc_zero(server->worker_count * sizeof(*watchdog.watches));
    watchdog.ends = false;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watchdog.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    config_on_change("watchdog-period", apply_period);
    (void)apply_period(config_find(SLICE("watchdog-period")));
}

void watchdog_stop(void)
{
    gate_assert_main_alone();
    mutex_lock(&watchdog.lock);
    watchdog.ends = true;
    pthread_cond_signal(&watchdog.changed);
    mutex_unlock(&watchdog.lock);
    thread_join(&watchdog.thread);
}

void watchdog_teardown(void)
{
    thread_assert_main();
    assert(!watchdog.thread.started);
    pthread_cond_destroy(&watchdog.changed);
    mem_free(watchdog.watches);
    watchdog.watches = NULL;
    watchdog.server = NULL;
}
