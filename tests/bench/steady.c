/* A library for LD_PRELOAD with which two runs of a server do the same: instructions.py counts them.
 *
 * Random numbers come from a fixed sequence: hashes have the same secret, and keys the same places. LuaJIT asks the
 * kernel for its own by syscall.
 *
 * In the main thread, which is the worker, the clocks almost stand still: each reading is 20 ns after the one before,
 * and as the server compares the processor's counter with them when it starts, that becomes as slow, too. The worker
 * waits for clients and other threads, but for no time. Background work that is due each second would otherwise fall on
 * a number of requests that depends on the machine's speed; it takes 62,000 instructions, as much as 50 requests. The
 * wall clock has a fixed beginning, as the shape of a stream's tree depends on its ids. Other threads have the real
 * time. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define STEP_NS 20
#define SECOND_NS 1000000000
#define WALL_BEGIN_S 1767225600

typedef long (*syscall_fn)(long number, ...);

enum { UNKNOWN, MAIN, OTHER };

/* A few instructions, as each turn of the event loop comes through here. */
static bool is_main_thread(void)
{
    static _Thread_local int which __attribute__((tls_model("initial-exec")));

    if (which == UNKNOWN)
        which = getpid() == gettid() ? MAIN : OTHER;
    return which == MAIN;
}

ssize_t getrandom(void *to, size_t size, unsigned flags)
{
    static _Thread_local uint64_t state = 1;
    unsigned char *bytes = to;

    (void)flags;
    for (size_t i = 0; i < size; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bytes[i] = (unsigned char)(state >> 56);
    }
    return (ssize_t)size;
}

static syscall_fn next_syscall(void)
{
    static _Atomic(syscall_fn) next;
    syscall_fn found = atomic_load_explicit(&next, memory_order_relaxed);

    if (found == NULL) {
        *(void **)&found = dlsym(RTLD_NEXT, "syscall");
        atomic_store_explicit(&next, found, memory_order_relaxed);
    }
    return found;
}

long syscall(long number, ...)
{
    long words[6];
    va_list list;

    va_start(list, number);
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        words[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_getrandom)
        return getrandom((void *)words[0], (size_t)words[1], 0);
    return next_syscall()(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
    return epoll_pwait(fd, events, most, is_main_thread() && timeout_ms != 0 ? -1 : timeout_ms, NULL);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static struct timespec wall = {.tv_sec = WALL_BEGIN_S}, monotonic;
    struct timespec *own = clock == CLOCK_REALTIME ? &wall : &monotonic;

    if (!is_main_thread() || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
        return (int)next_syscall()(SYS_clock_gettime, clock, now);
    if (own->tv_sec == 0 && next_syscall()(SYS_clock_gettime, clock, own) != 0)
        return -1;
    own->tv_nsec += STEP_NS;
    if (own->tv_nsec >= SECOND_NS) {
        own->tv_nsec -= SECOND_NS;
        own->tv_sec++;
    }
    *now = *own;
    return 0;
}
