/* The caller stores the thread's number, sends the signal and waits for the answer. A thread with another number (a
 * signal from outside) ignores the signal. backtrace() loads its helper at the first call, which allocates:
 * stack_trace_setup makes that call. */
#include "base/stack_trace.h"

#include "base/log.h"
#include "base/panic.h"
#include "base/symbols.h"
#include "base/thread.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES_MOST = 100, STEP_MS = 1, ANSWER_MS = 200, ENTRIES_BYTES = 4096 };

static _Atomic pid_t asked_thread;    /* atomic: the thread that has to answer; 0: none. Pairs with answered_thread */
static _Atomic pid_t answered_thread; /* atomic: release; the thread that has answered */
static _Atomic bool is_held;          /* atomic: threads that answer stay in the handler */

static char own_path[PATH_MAX]; /* const after setup */

static pid_t own_number(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* "file(function+0x12)[0x55...]", and without a function the distance from the file's begin, as addr2line wants it. */
static void write_frame(void *frame)
{
    struct symbol_place place;
    char line[PATH_MAX + 512];
    int size;

    if (symbols_find(frame, &place))
        size = snprintf(line, sizeof(line), "%s(%.256s+0x%lx)[%p]\n", place.file[0] != '\0' ? place.file : own_path,
                        place.function != NULL ? place.function : "", (unsigned long)((uintptr_t)frame - place.base),
                        frame);
    else
        size = snprintf(line, sizeof(line), "[%p]\n", frame);
    log_from_signal_raw(line, (size_t)MIN(MAX(size, 0), (int)sizeof(line) - 1));
}

static void write_frames(void)
{
    void *frames[FRAMES_MOST];
    int count = backtrace(frames, FRAMES_MOST);

    for (int i = 0; i < count; i++)
        write_frame(frames[i]);
}

void stack_trace_self(void)
{
    char name[17] = "";
    char line[64];
    int size;

    if (prctl(PR_GET_NAME, name) != 0)
        name[0] = '\0';
    size = snprintf(line, sizeof(line), "\n%d %s\n", (int)own_number(), name);
    log_from_signal_raw(line, (size_t)size);
    write_frames();
}

static void on_asked(int signal_number)
{
    int error = errno;
    pid_t self = own_number();
    sigset_t all;

    (void)signal_number;
    if (atomic_load(&asked_thread) == self) {
        stack_trace_self();
        atomic_store(&asked_thread, 0);
        atomic_store(&answered_thread, self);
        sigfillset(&all);
        while (atomic_load(&is_held))
            sigsuspend(&all);
    }
    errno = error;
}

void stack_trace_setup(void)
{
    struct sigaction action;
    ssize_t size;
    void *frame;

    thread_assert_only();
    (void)backtrace(&frame, 1);
    symbols_setup();
    size = readlink("/proc/self/exe", own_path, sizeof(own_path) - 1);
    own_path[MAX(size, 0)] = '\0';
    memset(&action, 0, sizeof(action));
    sigfillset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    action.sa_handler = on_asked;
    sigaction(SIGUSR2, &action, NULL);
}

bool stack_trace_thread(pid_t thread, int limit_ms)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};

    atomic_store(&answered_thread, 0);
    atomic_store(&asked_thread, thread);
    if (syscall(SYS_tgkill, getpid(), thread, SIGUSR2) != 0) {
        atomic_store(&asked_thread, 0);
        return false;
    }
    for (int waited_ms = 0; waited_ms < limit_ms; waited_ms += STEP_MS) {
        if (atomic_load(&answered_thread) == thread)
            return true;
        nanosleep(&step, NULL);
    }
    atomic_store(&asked_thread, 0);
    return atomic_load(&answered_thread) == thread;
}

static void ask(pid_t thread)
{
    char line[64];
    int size;

    if (stack_trace_thread(thread, ANSWER_MS))
        return;
    size = snprintf(line, sizeof(line), "\n%d does not answer\n", (int)thread);
    log_from_signal_raw(line, (size_t)size);
}

/* As getdents64 hands them out: opendir would allocate. */
struct directory_entry {
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

void stack_trace_others(bool hold)
{
    _Alignas(struct directory_entry) char entries[ENTRIES_BYTES];
    int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    pid_t self = own_number();
    long got;

    atomic_store(&is_held, hold);
    while (folder >= 0 && (got = syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0) {
        for (long at = 0; at < got;) {
            const struct directory_entry *entry = (const struct directory_entry *)(const void *)&entries[at];
            int thread = atoi(entry->name);

            if (thread > 0 && thread != self)
                ask((pid_t)thread);
            at += entry->size;
        }
    }
    if (folder >= 0)
        close(folder);
}
