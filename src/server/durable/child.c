#include "server/durable/child.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/spinlock.h"
#include "base/status.h"
#include "base/thread.h"
#include "server/config/options_process.h"
#include "server/durable/file_options.h"
#include "server/core/server.h"
#include "server/observe/latency.h"
#include "server/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TELL_US = 1000 * 1000, TSAN_CHILD_S = 25 };

/* Whether a file may still get its name. */
enum commit { COMMIT_OPEN, COMMIT_RUNS, COMMIT_DONE, COMMIT_REFUSED };

/* One child at a time: the owner of the gate sets `kind` if it is NONE; worker 0 resets it, and owns all other fields
 * between the two. */
static struct {
    _Atomic enum child_kind kind; /* atomic: release and acquire hand the rest over */
    struct spinlock lock;         /* rank LOCK_REGISTRY: the process is not waited for while it is killed */
    pid_t pid GUARDED_BY(lock);
    bool was_stopped GUARDED_BY(lock);
    int pipe;
    struct child_task task;
    struct child_report report; /* the last one; of a thread its own, until has_ended */
    /* A thread instead of a process: */
    struct thread thread;
    struct live_snapshot *_Atomic live; /* atomic: the last one, also behind its end; NULL: there was none */
    _Atomic bool has_ended;             /* atomic: release, by the thread */
    _Atomic enum commit commit;
    const char *_Atomic method; /* of the last one; NULL: there was none */
    _Atomic int64_t gate_us;
    /* atomic, relaxed: for INFO */
    _Atomic int64_t started_us, told_us, last_fork_us;
    _Atomic uint64_t fork_count, keys, keys_total, cow_bytes, cow_peak_bytes;
} child = {.pipe = -1};

/* ----------------------------------------------------------------------------------------------- in the child -- */

static struct {
    int pipe;
    uint64_t next_us;
} self = {.pipe = -1};

/* Private memory of this process: after a fork all of it is copied memory. */
static uint64_t private_bytes(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    char line[256];
    uint64_t kilobytes = 0;
    unsigned long long number;

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "Private_Dirty: %llu kB", &number) == 1)
            kilobytes += number;
    }
    (void)fclose(file);
    return kilobytes * 1024;
}

static void send_report(struct child_report *report)
{
    assert(self.pipe >= 0);
    static_assert(sizeof(*report) <= 4096, "a report goes through the pipe in one piece");
    uint64_t cow = private_bytes();

    report->cow_bytes = MAX(cow, report->cow_bytes);
    while (write(self.pipe, report, sizeof(*report)) < 0 && errno == EINTR)
        ;
}

static bool tell_of_thread(const struct child_report *report);

void child_tell(struct child_report *report)
{
    uint64_t now;

    if (!child_is_copy()) {
        (void)tell_of_thread(report);
        return;
    }
    now = clock_monotonic_us();
    assert(self.pipe >= 0);
    if (now < self.next_us)
        return;
    self.next_us = now + TELL_US;
    send_report(report);
}

bool child_tell_keys(uint64_t keys, void *report)
{
    struct child_report *its = report;

    its->keys = keys;
    if (!child_is_copy())
        return tell_of_thread(its);
    child_tell(its);
    return true;
}

/* Sockets stay open as long as anybody has them, and a listening one even takes connections for nobody. */
static void close_others(unsigned low, unsigned high)
{
    if (low > 3)
        (void)syscall(SYS_close_range, 3U, low - 1, 0U);
    if (high > low + 1)
        (void)syscall(SYS_close_range, low + 1, high - 1, 0U);
    (void)syscall(SYS_close_range, high + 1, ~0U, 0U);
}

static bool is_copy; /* written once, in the child */

bool child_is_copy(void)
{
    return is_copy;
}

/* ThreadSanitizer's allocator keeps the locks that other threads held at a fork, where jemalloc and the C library let
 * them go. Rarely a child waits for one of them for ever: it ends then, and the server says that it was terminated. */
static void limit_life(void)
{
#if THREAD_SANITIZER
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(TSAN_CHILD_S);
#endif
}

void child_become(int kept_fd, int other_fd)
{
    assert(!is_copy && kept_fd >= 0 && other_fd >= 0);
    is_copy = true;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing is put in its place after the server's own end */
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGPIPE, SIG_IGN);
    thread_restore_signals(); /* the other workers block all of them */
    spinlock_alone();
    log_mark_child();
    if (other_fd == 0)
        other_fd = kept_fd;
    close_others((unsigned)MIN(kept_fd, other_fd), (unsigned)MAX(kept_fd, other_fd));
    status_ignore(process_set_oom_score(OOM_CHILD), "the log says so; the child works without");
}

static void NORETURN run_child(int pipe_end)
{
    struct child_report report = {.status = STATUS_OK};
    struct snapshot keys = snapshot_of_access(child.task.access);

    child_become(pipe_end, child.task.kept_fd);
    limit_life();
    process_use_cpus_of_child(child.task.kind == CHILD_AOF);
    self.pipe = pipe_end;
    self.next_us = clock_monotonic_us() + TELL_US;
    child.task.run(&keys, &report, child.task.context);
    report.is_last = true;
    send_report(&report);
    _exit(report.status == STATUS_OK ? 0 : 1);
}

/* --------------------------------------------------------------------------------------------- in the thread -- */

static const char method_threads[] = "threads", method_fork[] = "fork";

static bool is_thread(void)
{
    return atomic_load_explicit(&child.method, memory_order_relaxed) == method_threads;
}

/* False: it was stopped. */
static bool tell_of_thread(const struct child_report *report)
{
    assert(is_thread());
    atomic_store_explicit(&child.keys, report->keys, memory_order_relaxed);
    atomic_store_explicit(&child.told_us, (int64_t)clock_monotonic_us(), memory_order_relaxed);
    return !live_snapshot_is_cancelled(atomic_load_explicit(&child.live, memory_order_relaxed));
}

bool child_may_commit(void *context)
{
    enum commit open = COMMIT_OPEN;

    (void)context;
    if (child_is_copy())
        return true;
    return !live_snapshot_is_cancelled(atomic_load_explicit(&child.live, memory_order_relaxed)) &&
           atomic_compare_exchange_strong(&child.commit, &open, COMMIT_RUNS);
}

void child_committed(void *context)
{
    (void)context;
    if (!child_is_copy())
        atomic_store(&child.commit, COMMIT_DONE);
}

static void run_thread(void *argument)
{
    struct live_snapshot *live = atomic_load_explicit(&child.live, memory_order_relaxed);
    struct child_report *report = &child.report;

    (void)argument;
    live_snapshot_adopt(live);
    process_use_cpus_of_child(child.task.kind == CHILD_AOF);
    *report = (struct child_report){.status = STATUS_OK};
    child.task.run(live_snapshot_keys(live), report, child.task.context);
    report->is_last = !live_snapshot_is_cancelled(live) || atomic_load(&child.commit) == COMMIT_DONE;
    report->cow_bytes = live_snapshot_costs(live).kept_peak_bytes;
    live_snapshot_end(&live);
    atomic_store_explicit(&child.keys, child.task.keys_total, memory_order_relaxed);
    if (child.task.kept_fd != 0)
        (void)close(child.task.kept_fd);
    atomic_store_explicit(&child.has_ended, true, memory_order_release);
    worker_wake(&server_instance()->workers[0]);
}

/* ---------------------------------------------------------------------------------------------- in the server -- */

static void note_numbers(const struct child_task *task, const char *method, uint64_t start_us)
{
    const int64_t now_us = (int64_t)clock_monotonic_us();

    child.report = (struct child_report){.status = STATUS_INTERRUPTED};
    atomic_store_explicit(&child.method, method, memory_order_relaxed);
    atomic_store_explicit(&child.started_us, now_us, memory_order_relaxed);
    atomic_store_explicit(&child.told_us, now_us, memory_order_relaxed);
    atomic_store_explicit(&child.gate_us, now_us - (int64_t)start_us, memory_order_relaxed);
    atomic_store_explicit(&child.keys, 0, memory_order_relaxed);
    atomic_store_explicit(&child.keys_total, task->keys_total, memory_order_relaxed);
    atomic_store_explicit(&child.cow_bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&child.cow_peak_bytes, 0, memory_order_relaxed);
}

/* False: as many as possible run. */
static bool start_thread(const struct child_task *task, uint64_t start_us)
{
    const struct live_options options = {.gate = &server_instance()->gate, .kept_most = snapshot_kept_most()};
    struct live_snapshot *live = live_snapshot_begin(task->access, &options);

    if (live == NULL) {
        errno = EAGAIN;
        return false;
    }
    assert(child.pipe < 0 && !child.thread.started);
    note_numbers(task, method_threads, start_us);
    atomic_store_explicit(&child.live, live, memory_order_release);
    atomic_store(&child.commit, COMMIT_OPEN);
    atomic_store(&child.has_ended, false);
    thread_start(&child.thread, "snapshot", run_thread, NULL);
    return true;
}

static void note_start(const struct child_task *task, pid_t pid, int pipe_end, int64_t fork_us)
{
    spinlock_acquire(&child.lock);
    assert(child.pid == 0);
    child.pid = pid;
    child.was_stopped = false;
    spinlock_release(&child.lock);
    assert(child.pipe < 0);
    child.pipe = pipe_end;
    note_numbers(task, method_fork, clock_monotonic_us() - (uint64_t)fork_us);
    atomic_store_explicit(&child.last_fork_us, fork_us, memory_order_relaxed);
    atomic_fetch_add_explicit(&child.fork_count, 1, memory_order_relaxed);
    latency_add(LATENCY_FORK, fork_us / 1000);
}

static bool start_process(const struct child_task *task, uint64_t start_us)
{
    int ends[2], error;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    pid = fork();
    if (pid == 0) {
        (void)fcntl(ends[1], F_SETFL, 0);
        run_child(ends[1]);
    }
    error = errno;
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        errno = error;
        return false;
    }
    if (task->kept_fd != 0)
        (void)close(task->kept_fd);
    atomic_store_explicit(&task->access->store->is_shared, true, memory_order_relaxed);
    note_start(task, pid, ends[0], (int64_t)(clock_monotonic_us() - start_us));
    return true;
}

bool child_start(const struct child_task *task)
{
    const uint64_t start_us = clock_monotonic_us();
    bool has_started;

    gate_assert_alone();
    assert(task->kind != CHILD_NONE && task->run != NULL && task->done != NULL);
    if (atomic_load_explicit(&child.kind, memory_order_acquire) != CHILD_NONE) {
        errno = EEXIST;
        return false;
    }
    child.task = *task;
    if (!task->needs_copy && snapshot_method() == SNAPSHOT_THREADS)
        has_started = start_thread(task, start_us);
    else
        has_started = start_process(task, start_us);
    if (!has_started) {
        const int error = errno;

        if (task->kept_fd != 0)
            (void)close(task->kept_fd);
        errno = error;
        return false;
    }
    atomic_store_explicit(&child.kind, task->kind, memory_order_release);
    return true;
}

static void NORETURN do_work(int pipe_end, void (*run)(struct snapshot *, struct child_report *, void *), void *context,
                             struct access *access)
{
    struct child_report report = {.status = STATUS_OK};
    struct snapshot keys = snapshot_of_access(access);

    child_become(pipe_end, 0);
    limit_life();
    self.pipe = pipe_end;
    run(&keys, &report, context);
    report.is_last = true;
    send_report(&report);
    _exit(report.status == STATUS_OK ? 0 : 1);
}

bool child_work(void (*run)(struct snapshot *keys, struct child_report *report, void *context), void *context,
                struct access *access, struct child_report *report)
{
    int ends[2], error, wait_status;
    ssize_t got;
    pid_t pid;

    gate_assert_alone();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid = fork();
    if (pid == 0)
        do_work(ends[1], run, context, access);
    error = errno;
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        errno = error;
        return false;
    }
    while ((got = read(ends[0], report, sizeof(*report))) < 0 && errno == EINTR)
        ;
    (void)close(ends[0]);
    while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
        ;
    report->error[CHILD_ERROR_BYTES - 1] = '\0';
    errno = 0;
    return got == (ssize_t)sizeof(*report) && report->is_last;
}

static void read_reports(void)
{
    struct child_report report;

    while (read(child.pipe, &report, sizeof(report)) == (ssize_t)sizeof(report)) {
        report.error[CHILD_ERROR_BYTES - 1] = '\0';
        child.report = report;
        atomic_store_explicit(&child.told_us, (int64_t)clock_monotonic_us(), memory_order_relaxed);
        atomic_store_explicit(&child.keys, report.keys, memory_order_relaxed);
        atomic_store_explicit(&child.cow_bytes, report.cow_bytes, memory_order_relaxed);
        if (report.cow_bytes > atomic_load_explicit(&child.cow_peak_bytes, memory_order_relaxed))
            atomic_store_explicit(&child.cow_peak_bytes, report.cow_bytes, memory_order_relaxed);
    }
}

/* Not 0: it has ended, in the way *wait_status tells. */
static pid_t reap(int *wait_status, bool *was_stopped, bool wait)
{
    pid_t pid;

    spinlock_acquire(&child.lock);
    pid = child.pid;
    *was_stopped = child.was_stopped;
    if (pid != 0 && !wait)
        pid = waitpid(pid, wait_status, WNOHANG);
    else if (pid != 0)
        while ((pid = waitpid(child.pid, wait_status, 0)) < 0 && errno == EINTR)
            ;
    if (pid > 0)
        child.pid = 0;
    spinlock_release(&child.lock);
    return MAX(pid, 0);
}

/* The thread has ended, or does so right away. */
static void finish_thread(void)
{
    const struct child_task task = child.task;
    struct child_report report;

    thread_join(&child.thread);
    report = child.report;
    if (!report.is_last) {
        report.status = STATUS_INTERRUPTED;
        (void)snprintf(report.error, sizeof(report.error), "stopped");
    }
    atomic_store_explicit(&child.kind, CHILD_NONE, memory_order_release);
    task.done(&report, task.context);
}

bool child_has_ended(void)
{
    return atomic_load_explicit(&child.has_ended, memory_order_relaxed) && child_running() != CHILD_NONE && is_thread();
}

static void finish(pid_t pid, int wait_status, bool was_stopped)
{
    struct child_report report;
    struct child_task task = child.task;

    assert(child.pipe >= 0);
    read_reports();
    (void)close(child.pipe);
    child.pipe = -1;
    report = child.report;
    report.pid = pid;
    if (!report.is_last) {
        report.status = STATUS_INTERRUPTED;
        if (was_stopped)
            (void)snprintf(report.error, sizeof(report.error), "stopped");
        else if (WIFSIGNALED(wait_status))
            (void)snprintf(report.error, sizeof(report.error), "terminated by signal %d", WTERMSIG(wait_status));
        else if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == SPINLOCK_FORSAKEN)
            (void)snprintf(report.error, sizeof(report.error), "it needed a lock that another thread held");
        else
            (void)snprintf(report.error, sizeof(report.error), "ended without a report");
    }
    atomic_store_explicit(&task.access->store->is_shared, false, memory_order_relaxed);
    atomic_store_explicit(&child.kind, CHILD_NONE, memory_order_release);
    task.done(&report, task.context);
}

void child_look(void)
{
    int wait_status = 0;
    bool was_stopped;
    pid_t pid;

    worker_assert_zero(&server_instance()->workers[0]);
    if (atomic_load_explicit(&child.kind, memory_order_acquire) == CHILD_NONE)
        return;
    if (is_thread()) {
        if (atomic_load_explicit(&child.has_ended, memory_order_acquire))
            finish_thread();
        return;
    }
    read_reports();
    pid = reap(&wait_status, &was_stopped, false);
    if (pid != 0)
        finish(pid, wait_status, was_stopped);
}

/* Behind it no file gets its name. */
static void stop_thread(enum child_kind kind)
{
    struct live_snapshot *live = atomic_load_explicit(&child.live, memory_order_acquire);
    enum commit commit = COMMIT_OPEN;

    if (!atomic_compare_exchange_strong(&child.commit, &commit, COMMIT_REFUSED)) {
        while (atomic_load(&child.commit) == COMMIT_RUNS)
            (void)sched_yield(); /* a file is being renamed */
        if (commit != COMMIT_REFUSED)
            return;
    }
    if (!live_snapshot_is_cancelled(live))
        log_notice("Stopping the %s snapshot", kind == CHILD_AOF ? "AOF" : "RDB");
    live_snapshot_cancel(live);
}

void child_stop(enum child_kind kind)
{
    pid_t stopped = 0;

    if (kind == CHILD_NONE || atomic_load_explicit(&child.kind, memory_order_acquire) != kind)
        return;
    if (is_thread()) {
        stop_thread(kind);
        return;
    }
    spinlock_acquire(&child.lock);
    if (child.pid != 0 && !child.was_stopped) {
        stopped = child.pid;
        child.was_stopped = true;
        (void)kill(child.pid, SIGKILL);
    }
    spinlock_release(&child.lock);
    if (stopped != 0)
        log_notice("Killing the %s child %d", kind == CHILD_AOF ? "AOF" : "RDB", (int)stopped);
}

void child_teardown(void)
{
    int wait_status = 0;
    bool was_stopped;
    pid_t pid;

    gate_assert_main_alone();
    child_stop(child_running());
    if (child_running() == CHILD_NONE)
        return;
    if (is_thread()) {
        finish_thread();
        return;
    }
    pid = reap(&wait_status, &was_stopped, true);
    if (pid != 0)
        finish(pid, wait_status, was_stopped);
}

const char *child_name(void)
{
    static _Thread_local char room[24];

    if (is_thread())
        return "a thread";
    spinlock_acquire(&child.lock);
    (void)snprintf(room, sizeof(room), "pid %d", (int)child.pid);
    spinlock_release(&child.lock);
    return room;
}

enum child_kind child_running(void)
{
    return atomic_load_explicit(&child.kind, memory_order_acquire);
}

void child_stats(struct child_stats *stats)
{
    int64_t now = (int64_t)clock_monotonic_us();
    bool runs = child_running() != CHILD_NONE;

#define LOAD(field) atomic_load_explicit(&child.field, memory_order_relaxed)
    const char *method = LOAD(method);
    const struct live_snapshot *live = atomic_load_explicit(&child.live, memory_order_acquire);

    *stats = (struct child_stats){.fork_count = LOAD(fork_count),
                                  .last_fork_us = LOAD(last_fork_us),
                                  .running_s = -1,
                                  .cow_peak_bytes = runs ? LOAD(cow_peak_bytes) : 0,
                                  .method = method != NULL ? method : "none",
                                  .gate_us = LOAD(gate_us)};
    if (live != NULL)
        stats->live = live_snapshot_costs(live);
    if (!runs)
        return;
    stats->running_s = (now - LOAD(started_us)) / (1000 * 1000);
    stats->cow_age_s = (now - LOAD(told_us)) / (1000 * 1000);
    stats->keys = LOAD(keys);
    stats->keys_total = LOAD(keys_total);
    stats->cow_bytes = LOAD(cow_bytes);
    if (is_thread()) {
        stats->cow_bytes = stats->live.kept_bytes;
        stats->cow_peak_bytes = stats->live.kept_peak_bytes;
    }
#undef LOAD
}

void child_stats_reset(void)
{
    gate_assert_alone();
    atomic_store_explicit(&child.fork_count, 0, memory_order_relaxed);
    atomic_store_explicit(&child.last_fork_us, 0, memory_order_relaxed);
}
