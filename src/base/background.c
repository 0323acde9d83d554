#include "base/background.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/mutex.h"
#include "base/panic.h"
#include "base/thread.h"

#include <pthread.h>

struct job {
    struct list_node node;
    enum background_kind kind;
    background_fn run;
    void *argument;
};

/* A mutex and not a spinlock: waiting threads sleep, and no caller holds it for more than a few instructions. It is a
 * leaf: nothing is called under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_done = PTHREAD_COND_INITIALIZER;

/* A queue and its threads. */
static struct lane {
    const char *name;         /* const: of the threads */
    pthread_cond_t work_came; /* with the lock */
    struct list jobs;         /* guarded by the lock */
} free_lane = {.name = "lazyfree", .work_came = PTHREAD_COND_INITIALIZER},
  other_lane = {.name = "background", .work_came = PTHREAD_COND_INITIALIZER};

static bool is_running GUARDED_BY(lock);
static size_t pending[BACKGROUND_KIND_COUNT] GUARDED_BY(lock);
static size_t done[BACKGROUND_KIND_COUNT] GUARDED_BY(lock);
static size_t pending_sum GUARDED_BY(lock);
static struct thread *threads;               /* owner: the main thread */
static unsigned running_count;               /* owner: the main thread */
static const struct background_hooks *hooks; /* const after setup */
static _Thread_local bool runs_jobs;         /* owner: the thread */

void background_set_hooks(const struct background_hooks *new_hooks)
{
    hooks = new_hooks;
}

static void call(void (*hook)(void))
{
    if (hook != NULL)
        hook();
}

static struct lane *lane_of(enum background_kind kind)
{
    return kind == BACKGROUND_FREE ? &free_lane : &other_lane;
}

/* NULL: no more work will come. */
static struct job *wait_for_job(struct lane *lane)
{
    struct list_node *node;

    mutex_lock(&lock);
    while (list_is_empty(&lane->jobs) && is_running)
        pthread_cond_wait(&lane->work_came, &lock);
    node = list_pop_front(&lane->jobs);
    mutex_unlock(&lock);
    return node == NULL ? NULL : container_of(node, struct job, node);
}

static void finish_job(struct job *job)
{
    mutex_lock(&lock);
    pending[job->kind]--;
    done[job->kind]++;
    if (--pending_sum == 0)
        pthread_cond_broadcast(&work_done);
    mutex_unlock(&lock);
    mem_free_sized(job, sizeof(*job));
}

static void background_main(void *argument)
{
    static const struct background_hooks no_hooks;
    const struct background_hooks *around = hooks == NULL ? &no_hooks : hooks;
    struct job *job;

    runs_jobs = true;
    call(around->thread_begin);
    while ((job = wait_for_job(argument)) != NULL) {
        call(around->before);
        job->run(job->argument);
        call(around->after);
        finish_job(job);
    }
    call(around->thread_end);
}

static void lock_for_fork(void)
{
    mutex_lock(&lock);
}

static void unlock_after_fork(void)
{
    mutex_unlock(&lock);
}

/* A forked child does not have the threads: jobs run at once. */
static void forget_in_child(void)
{
    is_running = false;
    list_init(&free_lane.jobs);
    list_init(&other_lane.jobs);
    pending_sum = 0;
    for (unsigned kind = 0; kind < BACKGROUND_KIND_COUNT; kind++)
        pending[kind] = 0;
    mutex_unlock(&lock);
}

static void lane_start(struct lane *lane, struct thread *its_threads, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        thread_start(&its_threads[i], lane->name, background_main, lane);
}

void background_setup(unsigned thread_count)
{
    static bool knows_forks; /* owner: the main thread */

    thread_assert_main();
    if (!knows_forks && pthread_atfork(lock_for_fork, unlock_after_fork, forget_in_child) != 0)
        panic("Out of memory registering fork handlers");
    knows_forks = true;
    assert(threads == NULL);
    assert(thread_count > 0);
    list_init(&free_lane.jobs);
    list_init(&other_lane.jobs);
    for (unsigned kind = 0; kind < BACKGROUND_KIND_COUNT; kind++)
        done[kind] = 0;
    running_count = 2 * thread_count;
    threads = mem_alloc_zero(running_count * sizeof(*threads));
    mutex_lock(&lock);
    is_running = true;
    mutex_unlock(&lock);
    lane_start(&free_lane, threads, thread_count);
    lane_start(&other_lane, threads + thread_count, thread_count);
}

void background_teardown(void)
{
    thread_assert_main();
    mutex_lock(&lock);
    is_running = false;
    pthread_cond_broadcast(&free_lane.work_came);
    pthread_cond_broadcast(&other_lane.work_came);
    mutex_unlock(&lock);
    for (unsigned i = 0; i < running_count; i++)
        thread_join(&threads[i]);
    mem_free(threads);
    threads = NULL;
    running_count = 0;
}

void background_submit(enum background_kind kind, background_fn run, void *argument)
{
    struct job *job = mem_alloc(sizeof(*job));
    struct lane *lane = lane_of(kind);
    bool is_queued;

    *job = (struct job){.kind = kind, .run = run, .argument = argument};
    mutex_lock(&lock);
    is_queued = is_running;
    if (is_queued) {
        list_push_back(&lane->jobs, &job->node);
        pending[kind]++;
        pending_sum++;
        pthread_cond_signal(&lane->work_came);
    }
    mutex_unlock(&lock);
    if (!is_queued) {
        mem_free_sized(job, sizeof(*job));
        run(argument);
    }
}

static size_t read_counter(const size_t *counter)
{
    size_t value;

    mutex_lock(&lock);
    value = *counter;
    mutex_unlock(&lock);
    return value;
}

size_t background_pending(enum background_kind kind)
{
    return read_counter(&pending[kind]);
}

size_t background_done(enum background_kind kind)
{
    return read_counter(&done[kind]);
}

void background_drain(void)
{
    assert(!runs_jobs);
    mutex_lock(&lock);
    while (pending_sum != 0)
        pthread_cond_wait(&work_done, &lock);
    mutex_unlock(&lock);
}
