#include "base/thread.h"

#include "base/assert.h"
#include "base/fork_guard.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/spinlock.h"
#include "base/thread_priv.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Atomic unsigned next_index;
static void (*begin_hook)(void); /* const: set before the first thread starts; likewise end_hook */
static void (*end_hook)(void);
static _Thread_local unsigned self_index_plus_1; /* 0: not asked yet */

unsigned thread_self_index(void)
{
    if (self_index_plus_1 == 0)
        self_index_plus_1 = atomic_fetch_add_explicit(&next_index, 1, memory_order_relaxed) + 1;
    return self_index_plus_1 - 1;
}

static _Atomic unsigned running_count; /* atomic, relaxed: started and not joined */

void thread_assert_main(void)
{
    assert(thread_self_index() == 0);
}

void thread_assert_only(void)
{
    thread_assert_main();
    assert(atomic_load_explicit(&running_count, memory_order_relaxed) == 0);
}

void thread_set_hooks(void (*begin)(void), void (*end)(void))
{
    begin_hook = begin;
    end_hook = end;
}

void thread_set_name(const char *name)
{
    char cut[THREAD_NAME_SPACE];

    snprintf(cut, sizeof(cut), "%s", name);
    pthread_setname_np(pthread_self(), cut);
}

static void *thread_main(void *argument)
{
    struct thread *thread = argument;

    fork_guard_thread_begun();
    self_index_plus_1 = thread->index + 1;
    thread_set_name(thread->name);
    mem_thread_start();
    if (begin_hook != NULL)
        begin_hook();
    thread->run(thread->argument);
    if (end_hook != NULL)
        end_hook();
    mem_thread_stop();
    fork_guard_thread_ends();
    return NULL;
}

static sigset_t first_signals; /* global: the mask of who started the first thread; const from then on */
static bool signals_known;     /* global: likewise; by that thread */

void thread_start(struct thread *thread, const char *name, thread_fn run, void *argument)
{
    sigset_t all;
    sigset_t before;
    int error;

    spinlock_assert_may_sleep();
    assert(!thread->started);
    snprintf(thread->name, sizeof(thread->name), "%s", name);
    (void)thread_self_index(); /* the main thread is number 0 */
    thread->index = atomic_fetch_add_explicit(&next_index, 1, memory_order_relaxed);
    thread->run = run;
    thread->argument = argument;
    thread->started = true;
    atomic_fetch_add_explicit(&running_count, 1, memory_order_relaxed);
    /* The new thread inherits the mask. Faults of its own (SIGSEGV...) come to it in any case. */
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGABRT);
    sigdelset(&all, SIGUSR2); /* base/stack_trace.h asks for its frames */
    sigdelset(&all, SIGURG);  /* script/script_watch.h rings */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!signals_known) {
        first_signals = before;
        signals_known = true;
    }
    fork_guard_enter();
    error = pthread_create(&thread->id, NULL, thread_main, thread);
    fork_guard_leave();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        panic("Can't start thread %s: %s", name, strerror(error));
}

void thread_restore_signals(void)
{
    if (signals_known)
        pthread_sigmask(SIG_SETMASK, &first_signals, NULL);
}

void thread_join(struct thread *thread)
{
    if (!thread->started)
        return;
    spinlock_assert_may_sleep();
    if (pthread_join(thread->id, NULL) != 0)
        panic("Can't join thread %s", thread->name);
    thread->started = false;
    atomic_fetch_sub_explicit(&running_count, 1, memory_order_relaxed);
}

bool thread_set_affinity(int cpu)
{
    cpu_set_t set;

    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return false;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}

/* --- lists of processors --- */

static bool parse_cpu(const char **at, int *cpu)
{
    int number = 0;

    if (**at < '0' || **at > '9')
        return false;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        number = number * 10 + (**at - '0');
        if (number >= CPU_SETSIZE)
            return false;
    }
    *cpu = number;
    return true;
}

/* "5", "2-5" or "2-9:3". */
static bool parse_range(const char **at, cpu_set_t *set)
{
    int first, last, step = 1;

    if (!parse_cpu(at, &first))
        return false;
    last = first;
    if (**at == '-') {
        (*at)++;
        if (!parse_cpu(at, &last))
            return false;
        if (**at == ':') {
            (*at)++;
            if (!parse_cpu(at, &step))
                return false;
        }
    }
    if (last < first || step == 0)
        return false;
    for (int cpu = first; cpu <= last; cpu += step)
        CPU_SET((size_t)cpu, set);
    return true;
}

static bool parse_cpus(const char *list, cpu_set_t *set)
{
    CPU_ZERO(set);
    for (;;) {
        if (!parse_range(&list, set))
            return false;
        if (*list == '\0')
            return true;
        if (*list++ != ',')
            return false;
    }
}

bool thread_cpus_are_valid(const char *list)
{
    cpu_set_t set;

    return parse_cpus(list, &set);
}

bool thread_set_cpus(const char *list)
{
    cpu_set_t set;

    return parse_cpus(list, &set) && pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}

/* --- how many processors --- */

static bool read_line(const char *path, char *line, int space)
{
    FILE *stream = fopen(path, "re");
    bool found;

    if (stream == NULL)
        return false;
    found = fgets(line, space, stream) != NULL;
    fclose(stream);
    return found;
}

static unsigned cpus_of_quota(long long quota_us, long long period_us)
{
    if (quota_us <= 0 || period_us <= 0)
        return 0;
    return (unsigned)MIN((quota_us + period_us - 1) / period_us, INT_MAX);
}

static unsigned quota_of_folder(const char *folder)
{
    char path[PATH_MAX + 32];
    char line[128];
    char period_line[128];
    long long quota_us;
    long long period_us;

    snprintf(path, sizeof(path), "%s/cpu.max", folder);
    if (read_line(path, line, sizeof(line)))
        return sscanf(line, "%lld %lld", &quota_us, &period_us) == 2 ? cpus_of_quota(quota_us, period_us) : 0;
    snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, line, sizeof(line)) || sscanf(line, "%lld", &quota_us) != 1)
        return 0;
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
    if (!read_line(path, period_line, sizeof(period_line)) || sscanf(period_line, "%lld", &period_us) != 1)
        return 0;
    return cpus_of_quota(quota_us, period_us);
}

unsigned thread_quota(const char *mount, const char *group)
{
    char folder[PATH_MAX];
    size_t mount_size = strlen(mount);
    unsigned least = 0;

    if (snprintf(folder, sizeof(folder), "%s%s", mount, group) >= (int)sizeof(folder))
        return 0;
    for (;;) {
        unsigned here = quota_of_folder(folder);
        char *slash;

        if (here != 0 && (least == 0 || here < least))
            least = here;
        slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < mount_size)
            return least;
        *slash = '\0';
    }
}

/* A line of /proc/self/cgroup is "number:controllers:path"; version 2 has number 0 and no controllers. */
static unsigned quota_of_line(char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');

    if (controllers == NULL || group == NULL)
        return 0;
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (controllers[0] == '\0')
        return thread_quota("/sys/fs/cgroup", group);
    if (strcmp(controllers, "cpu") == 0 || strncmp(controllers, "cpu,", 4) == 0 ||
        strstr(controllers, ",cpu,") != NULL || strcmp(controllers, "cpuacct,cpu") == 0)
        return thread_quota("/sys/fs/cgroup/cpu", group);
    return 0;
}

static unsigned quota_of_process(void)
{
    char line[PATH_MAX + 256];
    FILE *stream = fopen("/proc/self/cgroup", "re");
    unsigned least = 0;

    if (stream == NULL)
        return 0;
    while (fgets(line, sizeof(line), stream) != NULL) {
        unsigned here = quota_of_line(line);

        if (here != 0 && (least == 0 || here < least))
            least = here;
    }
    fclose(stream);
    return least;
}

unsigned thread_cpu_count(void)
{
    cpu_set_t set;
    unsigned quota = quota_of_process();
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned count = online > 0 ? (unsigned)online : 1;

    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        count = (unsigned)CPU_COUNT(&set);
    return quota != 0 && quota < count ? quota : count;
}
