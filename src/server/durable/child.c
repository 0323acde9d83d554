#include "server/durable/child.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/spinlock.h"
#include "base/status.h"
#include "base/thread.h"
#include "server/config/options_process.h"
#include "server/durable/data_order.h"
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

enum { SLOT_FILES, SLOT_SYNCS, SLOT_COUNT };

/* One that runs, or has run. The owner of the gate sets `kind` if it is NONE; worker 0 resets it, and owns all other
 * fields between the two. */
struct slot {
    _Atomic enum child_kind kind; /* atomic: release and acquire hand the rest over */
    struct spinlock lock;         /* rank LOCK_REGISTRY: what is stopped does not end meanwhile */
    pid_t pid GUARDED_BY(lock);
    bool was_stopped GUARDED_BY(lock);
    int pipe;
    struct child_task task;
    struct child_report report; /* the last one; of a thread its own, until has_ended */
    /* A thread instead of a process: */
    struct thread thread;
    _Atomic bool is_thread; /* atomic: relaxed */
    /* atomic: its thread reads it without the lock. NULL: the snapshot has ended, and may be another's next */
    struct live_snapshot *_Atomic live GUARDED_BY(lock);
    struct live_costs costs GUARDED_BY(lock); /* at the end */
    _Atomic bool has_ended;                   /* atomic: release, by the thread */
    _Atomic enum commit commit;
    /* atomic, relaxed: for INFO */
    _Atomic int64_t started_us, told_us, gate_us;
    _Atomic uint64_t keys, keys_total, cow_bytes, cow_peak_bytes;
};

static struct slot slots[SLOT_COUNT] = {{.lock = {.rank = LOCK_REGISTRY}, .pipe = -1},
                                        {.lock = {.rank = LOCK_REGISTRY}, .pipe = -1}};

/* Of all of them; atomic, relaxed: for INFO. */
static struct {
    struct slot *_Atomic last; /* NULL: there was none */
    _Atomic int64_t last_fork_us;
    _Atomic uint64_t fork_count;
} history;

static struct slot *slot_of(enum child_kind kind)
{
    assert(kind != CHILD_NONE);
    return &slots[kind == CHILD_SYNC ? SLOT_SYNCS : SLOT_FILES];
}

static enum child_kind kind_of(const struct slot *slot)
{
    return atomic_load_explicit(&slot->kind, memory_order_acquire);
}

static bool is_thread(const struct slot *slot)
{
    return atomic_load_explicit(&slot->is_thread, memory_order_relaxed);
}

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

static bool tell_of_thread(struct child_report *report);

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

static void NORETURN run_child(const struct child_task *task, int pipe_end)
{
    struct child_report report = {.status = STATUS_OK};
    struct snapshot keys = snapshot_of_chosen(task->access, task->choice);

    child_become(pipe_end, task->kept_fd);
    limit_life();
    process_use_cpus_of_child(task->kind == CHILD_AOF);
    self.pipe = pipe_end;
    self.next_us = clock_monotonic_us() + TELL_US;
    task->run(&keys, &report, task->context);
    report.is_last = true;
    send_report(&report);
    _exit(report.status == STATUS_OK ? 0 : 1);
}

/* --------------------------------------------------------------------------------------------- in the thread -- */

/* Whose own report it is. */
static struct slot *slot_of_report(struct child_report *report)
{
    struct slot *slot = container_of(report, struct slot, report);

    assert(!child_is_copy() && slot >= slots && slot < slots + SLOT_COUNT && is_thread(slot));
    return slot;
}

static bool is_cancelled(const struct slot *slot)
{
    return live_snapshot_is_cancelled(atomic_load_explicit(&slot->live, memory_order_relaxed));
}

/* False: it was stopped. */
static bool tell_of_thread(struct child_report *report)
{
    struct slot *slot = slot_of_report(report);

    atomic_store_explicit(&slot->keys, report->keys, memory_order_relaxed);
    atomic_store_explicit(&slot->told_us, (int64_t)clock_monotonic_us(), memory_order_relaxed);
    return !is_cancelled(slot);
}

bool child_may_commit(void *report)
{
    enum commit open = COMMIT_OPEN;
    struct slot *slot;

    if (child_is_copy())
        return true;
    slot = slot_of_report(report);
    return !is_cancelled(slot) && atomic_compare_exchange_strong(&slot->commit, &open, COMMIT_RUNS);
}

void child_committed(void *report)
{
    if (!child_is_copy())
        atomic_store(&slot_of_report(report)->commit, COMMIT_DONE);
}

/* What is stopped from now on has ended. */
static void end_snapshot(struct slot *slot)
{
    struct live_snapshot *live;

    spinlock_acquire(&slot->lock);
    live = atomic_load_explicit(&slot->live, memory_order_relaxed);
    slot->costs = live_snapshot_costs(live);
    slot->costs.kept_bytes = 0; /* what was not visited is freed right away */
    atomic_store_explicit(&slot->live, NULL, memory_order_relaxed);
    spinlock_release(&slot->lock);
    live_snapshot_end(&live);
}

static void run_thread(void *argument)
{
    struct slot *slot = argument;
    struct live_snapshot *live = atomic_load_explicit(&slot->live, memory_order_relaxed);
    struct child_report *report = &slot->report;

    live_snapshot_adopt(live);
    process_use_cpus_of_child(slot->task.kind == CHILD_AOF);
    *report = (struct child_report){.status = STATUS_OK};
    slot->task.run(live_snapshot_keys(live), report, slot->task.context);
    if (slot->task.has_order)
        data_order_let_go(live_snapshot_keys(live));
    report->is_last = !live_snapshot_is_cancelled(live) || atomic_load(&slot->commit) == COMMIT_DONE;
    report->cow_bytes = live_snapshot_costs(live).kept_peak_bytes;
    end_snapshot(slot);
    atomic_store_explicit(&slot->keys, slot->task.keys_total, memory_order_relaxed);
    if (slot->task.kept_fd != 0)
        (void)close(slot->task.kept_fd);
    atomic_store_explicit(&slot->has_ended, true, memory_order_release);
    worker_wake(&server_instance()->workers[0]);
}

/* ---------------------------------------------------------------------------------------------- in the server -- */

static void note_numbers(struct slot *slot, bool in_thread, uint64_t start_us)
{
    const int64_t now_us = (int64_t)clock_monotonic_us();

    slot->report = (struct child_report){.status = STATUS_INTERRUPTED};
    atomic_store_explicit(&slot->is_thread, in_thread, memory_order_relaxed);
    atomic_store_explicit(&slot->started_us, now_us, memory_order_relaxed);
    atomic_store_explicit(&slot->told_us, now_us, memory_order_relaxed);
    atomic_store_explicit(&slot->gate_us, now_us - (int64_t)start_us, memory_order_relaxed);
    atomic_store_explicit(&slot->keys, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->keys_total, slot->task.keys_total, memory_order_relaxed);
    atomic_store_explicit(&slot->cow_bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->cow_peak_bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&history.last, slot, memory_order_release);
}

/* False: as many as possible run. */
static bool start_thread(struct slot *slot, uint64_t start_us)
{
    const struct live_options options = {.gate = &server_instance()->gate,
                                         .threads = snapshot_thread_count(),
                                         .kept_most = snapshot_kept_most(),
                                         .choice = slot->task.choice};
    struct live_snapshot *live = live_snapshot_begin(slot->task.access, &options);

    if (live == NULL) {
        errno = EAGAIN;
        return false;
    }
    assert(slot->pipe < 0 && !slot->thread.started);
    if (slot->task.has_order)
        data_order_keep(live_snapshot_keys(live));
    note_numbers(slot, true, start_us);
    spinlock_acquire(&slot->lock);
    atomic_store_explicit(&slot->live, live, memory_order_relaxed);
    spinlock_release(&slot->lock);
    atomic_store(&slot->commit, COMMIT_OPEN);
    atomic_store(&slot->has_ended, false);
    thread_start(&slot->thread, "snapshot", run_thread, slot);
    return true;
}

static void note_start(struct slot *slot, pid_t pid, int pipe_end, int64_t fork_us)
{
    spinlock_acquire(&slot->lock);
    assert(slot->pid == 0);
    slot->pid = pid;
    slot->was_stopped = false;
    spinlock_release(&slot->lock);
    assert(slot->pipe < 0);
    slot->pipe = pipe_end;
    note_numbers(slot, false, clock_monotonic_us() - (uint64_t)fork_us);
    atomic_store_explicit(&history.last_fork_us, fork_us, memory_order_relaxed);
    atomic_fetch_add_explicit(&history.fork_count, 1, memory_order_relaxed);
    latency_add(LATENCY_FORK, fork_us / 1000);
}

static bool start_process(struct slot *slot, uint64_t start_us)
{
    const struct child_task *task = &slot->task;
    int ends[2], error;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    pid = fork();
    if (pid == 0) {
        (void)fcntl(ends[1], F_SETFL, 0);
        run_child(task, ends[1]);
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
    note_start(slot, pid, ends[0], (int64_t)(clock_monotonic_us() - start_us));
    return true;
}

static bool uses_thread(void)
{
    return snapshot_method() == SNAPSHOT_THREADS;
}

bool child_may_start(enum child_kind kind)
{
    const bool is_to_be_thread = uses_thread();

    for (unsigned i = 0; i < SLOT_COUNT; i++) {
        const enum child_kind other = kind_of(&slots[i]);

        if (other != CHILD_NONE && (kind == CHILD_STATE || other == CHILD_STATE || &slots[i] == slot_of(kind) ||
                                    !is_to_be_thread || !is_thread(&slots[i])))
            return false;
    }
    return true;
}

bool child_start(const struct child_task *task)
{
    const uint64_t start_us = clock_monotonic_us();
    struct slot *slot = slot_of(task->kind);
    bool has_started;

    gate_assert_alone();
    assert(task->run != NULL && task->done != NULL);
    if (!child_may_start(task->kind)) {
        errno = EEXIST;
        return false;
    }
    slot->task = *task;
    has_started = uses_thread() ? start_thread(slot, start_us) : start_process(slot, start_us);
    if (!has_started) {
        const int error = errno;

        if (task->kept_fd != 0)
            (void)close(task->kept_fd);
        errno = error;
        return false;
    }
    atomic_store_explicit(&slot->kind, task->kind, memory_order_release);
    return true;
}

static void read_reports(struct slot *slot)
{
    struct child_report report;

    while (read(slot->pipe, &report, sizeof(report)) == (ssize_t)sizeof(report)) {
        report.error[CHILD_ERROR_BYTES - 1] = '\0';
        slot->report = report;
        atomic_store_explicit(&slot->told_us, (int64_t)clock_monotonic_us(), memory_order_relaxed);
        atomic_store_explicit(&slot->keys, report.keys, memory_order_relaxed);
        atomic_store_explicit(&slot->cow_bytes, report.cow_bytes, memory_order_relaxed);
        if (report.cow_bytes > atomic_load_explicit(&slot->cow_peak_bytes, memory_order_relaxed))
            atomic_store_explicit(&slot->cow_peak_bytes, report.cow_bytes, memory_order_relaxed);
    }
}

/* Not 0: it has ended, in the way *wait_status tells. */
static pid_t reap(struct slot *slot, int *wait_status, bool *was_stopped, bool wait)
{
    pid_t pid;

    spinlock_acquire(&slot->lock);
    pid = slot->pid;
    *was_stopped = slot->was_stopped;
    if (pid != 0 && !wait)
        pid = waitpid(pid, wait_status, WNOHANG);
    else if (pid != 0)
        while ((pid = waitpid(slot->pid, wait_status, 0)) < 0 && errno == EINTR)
            ;
    if (pid > 0)
        slot->pid = 0;
    spinlock_release(&slot->lock);
    return MAX(pid, 0);
}

/* The next one may begin at once, by another worker, and has the same files: so `done` comes before. */
static void release(struct slot *slot, const struct child_task *task, const struct child_report *report)
{
    task->done(report, task->context);
    atomic_store_explicit(&slot->kind, CHILD_NONE, memory_order_release);
    if (task->told != NULL)
        task->told(report, task->context);
}

/* The thread has ended, or does so right away. */
static void finish_thread(struct slot *slot)
{
    const struct child_task task = slot->task;
    struct child_report report;

    thread_join(&slot->thread);
    report = slot->report;
    if (!report.is_last) {
        report.status = STATUS_INTERRUPTED;
        (void)snprintf(report.error, sizeof(report.error), "stopped");
    }
    release(slot, &task, &report);
}

bool child_has_ended(void)
{
    for (unsigned i = 0; i < SLOT_COUNT; i++) {
        if (atomic_load_explicit(&slots[i].has_ended, memory_order_relaxed) && kind_of(&slots[i]) != CHILD_NONE &&
            is_thread(&slots[i]))
            return true;
    }
    return false;
}

static void finish(struct slot *slot, pid_t pid, int wait_status, bool was_stopped)
{
    struct child_report report;
    struct child_task task = slot->task;

    assert(slot->pipe >= 0);
    read_reports(slot);
    (void)close(slot->pipe);
    slot->pipe = -1;
    report = slot->report;
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
    release(slot, &task, &report);
}

static void look(struct slot *slot)
{
    int wait_status = 0;
    bool was_stopped;
    pid_t pid;

    if (kind_of(slot) == CHILD_NONE)
        return;
    if (is_thread(slot)) {
        if (atomic_load_explicit(&slot->has_ended, memory_order_acquire))
            finish_thread(slot);
        return;
    }
    read_reports(slot);
    pid = reap(slot, &wait_status, &was_stopped, false);
    if (pid != 0)
        finish(slot, pid, wait_status, was_stopped);
}

void child_look(void)
{
    worker_assert_zero(&server_instance()->workers[0]);
    for (unsigned i = 0; i < SLOT_COUNT; i++)
        look(&slots[i]);
}

/* False: it has ended, or was stopped before. */
static bool cancel(struct slot *slot)
{
    struct live_snapshot *live;
    bool cancels;

    spinlock_acquire(&slot->lock);
    live = atomic_load_explicit(&slot->live, memory_order_relaxed);
    cancels = live != NULL && !live_snapshot_is_cancelled(live);
    if (cancels)
        live_snapshot_cancel(live);
    spinlock_release(&slot->lock);
    return cancels;
}

static const char *file_of(enum child_kind kind)
{
    return kind == CHILD_AOF ? "AOF" : "RDB";
}

/* Behind it no file gets its name. */
static void stop_thread(struct slot *slot, enum child_kind kind)
{
    enum commit commit = COMMIT_OPEN;

    if (!atomic_compare_exchange_strong(&slot->commit, &commit, COMMIT_REFUSED)) {
        while (atomic_load(&slot->commit) == COMMIT_RUNS)
            (void)sched_yield(); /* a file is being renamed */
        if (commit != COMMIT_REFUSED)
            return;
    }
    if (cancel(slot))
        log_notice("Stopping the %s snapshot", file_of(kind));
}

void child_stop(enum child_kind kind)
{
    struct slot *slot = slot_of(kind);
    pid_t stopped = 0;

    if (kind_of(slot) != kind)
        return;
    if (is_thread(slot)) {
        stop_thread(slot, kind);
        return;
    }
    spinlock_acquire(&slot->lock);
    if (slot->pid != 0 && !slot->was_stopped) {
        stopped = slot->pid;
        slot->was_stopped = true;
        (void)kill(slot->pid, SIGKILL);
    }
    spinlock_release(&slot->lock);
    if (stopped != 0)
        log_notice("Killing the %s child %d", file_of(kind), (int)stopped);
}

static void end(struct slot *slot)
{
    const enum child_kind kind = kind_of(slot);
    int wait_status = 0;
    bool was_stopped;
    pid_t pid;

    if (kind == CHILD_NONE)
        return;
    child_stop(kind);
    if (is_thread(slot)) {
        finish_thread(slot);
        return;
    }
    pid = reap(slot, &wait_status, &was_stopped, true);
    if (pid != 0)
        finish(slot, pid, wait_status, was_stopped);
}

void child_teardown(void)
{
    gate_assert_main_alone();
    for (unsigned i = 0; i < SLOT_COUNT; i++)
        end(&slots[i]);
}

const char *child_name(enum child_kind kind)
{
    static _Thread_local char room[24];
    struct slot *slot = slot_of(kind);

    if (is_thread(slot))
        return "a thread";
    spinlock_acquire(&slot->lock);
    (void)snprintf(room, sizeof(room), "pid %d", (int)slot->pid);
    spinlock_release(&slot->lock);
    return room;
}

bool child_runs(enum child_kind kind)
{
    return kind_of(slot_of(kind)) == kind;
}

bool child_runs_any(void)
{
    for (unsigned i = 0; i < SLOT_COUNT; i++) {
        if (kind_of(&slots[i]) != CHILD_NONE)
            return true;
    }
    return false;
}

#define LOAD(from, field) atomic_load_explicit(&(from)->field, memory_order_relaxed)

int64_t child_running_s(enum child_kind kind)
{
    if (!child_runs(kind))
        return -1;
    return ((int64_t)clock_monotonic_us() - LOAD(slot_of(kind), started_us)) / (1000 * 1000);
}

static struct live_costs costs_of(struct slot *slot)
{
    const struct live_snapshot *live;
    struct live_costs costs;

    spinlock_acquire(&slot->lock);
    live = atomic_load_explicit(&slot->live, memory_order_relaxed);
    costs = live != NULL ? live_snapshot_costs(live) : slot->costs;
    spinlock_release(&slot->lock);
    return costs;
}

static void add_costs(struct child_stats *stats, const struct live_costs *costs)
{
    stats->live.kept_bytes += costs->kept_bytes;
    stats->live.kept_peak_bytes += costs->kept_peak_bytes;
    stats->live.kept_keys += costs->kept_keys;
    stats->live.slowed_us += costs->slowed_us;
    stats->live.held_us = MAX(stats->live.held_us, costs->held_us);
    stats->live.waited_us = MAX(stats->live.waited_us, costs->waited_us);
}

static void add_running(struct child_stats *stats, struct slot *slot)
{
    const int64_t age_s = ((int64_t)clock_monotonic_us() - LOAD(slot, told_us)) / (1000 * 1000);
    struct live_costs costs;

    stats->keys += LOAD(slot, keys);
    stats->keys_total += LOAD(slot, keys_total);
    stats->cow_age_s = MAX(stats->cow_age_s, age_s);
    if (is_thread(slot)) {
        costs = costs_of(slot);
        add_costs(stats, &costs);
        stats->cow_bytes += costs.kept_bytes;
        stats->cow_peak_bytes += costs.kept_peak_bytes;
    } else {
        stats->cow_bytes += LOAD(slot, cow_bytes);
        stats->cow_peak_bytes += LOAD(slot, cow_peak_bytes);
    }
}

void child_stats(struct child_stats *stats)
{
    struct slot *last = atomic_load_explicit(&history.last, memory_order_acquire);
    struct live_costs costs;
    bool runs = false;

    *stats = (struct child_stats){.fork_count = LOAD(&history, fork_count),
                                  .last_fork_us = LOAD(&history, last_fork_us),
                                  .method = "none"};
    for (unsigned i = 0; i < SLOT_COUNT; i++) {
        if (kind_of(&slots[i]) == CHILD_NONE)
            continue;
        add_running(stats, &slots[i]);
        runs = true;
    }
    if (last == NULL)
        return;
    stats->method = is_thread(last) ? "threads" : "fork";
    stats->gate_us = LOAD(last, gate_us);
    if (!runs && is_thread(last)) {
        costs = costs_of(last);
        add_costs(stats, &costs);
    }
}
#undef LOAD

void child_stats_reset(void)
{
    gate_assert_alone();
    atomic_store_explicit(&history.fork_count, 0, memory_order_relaxed);
    atomic_store_explicit(&history.last_fork_us, 0, memory_order_relaxed);
}
