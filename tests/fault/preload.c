/* A library for LD_PRELOAD, for servers whose power or disk fails. tests/fault/disk.py also loads it, to apply the
 * record. Environment variables control it:
 *
 *     KEYDB_POWER_CUT=FOLDER         records the changes of the files in this folder (base/power_cut.h); the program
 *                                    that starts the server has begun the record
 *     KEYDB_FAULT=KIND:NUMBER[:HOW]  makes one call of base/file.h fail. KIND is open, read, write, sync, rename,
 *                                    remove or truncate; the first call is number 0. HOW is eio (the default), enospc,
 *                                    short, torn or interrupt. Standard error then says "fault: KIND:NUMBER[:HOW]".
 *                                    KIND fork: that call of fork fails with EAGAIN
 *     KEYDB_CLOCK=FILE               the wall clock is ahead by so many milliseconds as the eight bytes of FILE say, a
 *                                    signed number of this machine. They may change while the server runs */
#include "base/compiler.h"
#include "base/fault.h"
#include "base/power_cut.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* It is in the server, and not in other programs such as the shell that starts the server. */
#pragma weak fault_order

static const struct {
    const char *name;
    unsigned kind;
} kinds[] = {
    {"open", FAULT_OPEN},     {"read", FAULT_READ},     {"write", FAULT_WRITE},       {"sync", FAULT_SYNC},
    {"rename", FAULT_RENAME}, {"remove", FAULT_REMOVE}, {"truncate", FAULT_TRUNCATE},
};

static const char *const hows[] = {
    [FAULT_HOW_EIO] = "eio",   [FAULT_HOW_ENOSPC] = "enospc",       [FAULT_HOW_SHORT] = "short",
    [FAULT_HOW_TORN] = "torn", [FAULT_HOW_INTERRUPT] = "interrupt",
};

static char fork_order[64];         /* const after begin; empty: all calls of fork succeed */
static _Atomic long long fork_left; /* atomic: calls before the one that fails; negative: it has failed */

pid_t fork(void)
{
    pid_t (*real)(void);

    *(void **)&real = dlsym(RTLD_NEXT, "fork");
    if (fork_order[0] == '\0' || atomic_fetch_sub(&fork_left, 1) != 0)
        return real();
    (void)fprintf(stderr, "fault: %s\n", fork_order);
    errno = EAGAIN;
    return -1;
}

static _Atomic int64_t *clock_shift_ms; /* const after begin; the file, as other processes write it; NULL: no shift */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const long failed = syscall(SYS_clock_gettime, clock, now);

    if (failed == 0 && clock == CLOCK_REALTIME && clock_shift_ms != NULL) {
        const int64_t now_ns = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + atomic_load(clock_shift_ms) * 1000000;

        now->tv_sec = now_ns / 1000000000;
        now->tv_nsec = now_ns % 1000000000;
    }
    return (int)failed;
}

static bool share_clock(const char *path)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    void *shared = MAP_FAILED;

    if (descriptor >= 0) {
        shared = mmap(NULL, sizeof(*clock_shift_ms), PROT_READ, MAP_SHARED, descriptor, 0);
        (void)close(descriptor);
    }
    if (shared == MAP_FAILED)
        return false;
    clock_shift_ms = shared;
    return true;
}

static bool order_fault(const char *order)
{
    char name[16] = "", way[16] = "eio";
    unsigned long long nth;
    size_t kind = 0, how = 0;

    if (sscanf(order, "%15[a-z]:%llu:%15[a-z]", name, &nth, way) < 2)
        return false;
    if (strcmp(name, "fork") == 0) {
        atomic_store(&fork_left, (long long)nth);
        (void)snprintf(fork_order, sizeof(fork_order), "%s", order); /* the server overwrites its environment */
        return true;
    }
    while (kind < countof(kinds) && strcmp(name, kinds[kind].name) != 0)
        kind++;
    while (how < countof(hows) && strcmp(way, hows[how]) != 0)
        how++;
    return kind < countof(kinds) && how < countof(hows) &&
           fault_order(kinds[kind].kind, nth, (enum fault_how)how, order);
}

__attribute__((constructor)) static void begin(void)
{
    const char *folder = getenv("KEYDB_POWER_CUT"), *fault = getenv("KEYDB_FAULT");
    const char *clock = getenv("KEYDB_CLOCK");

    if (folder != NULL)
        power_cut_join(folder);
    if (fault != NULL && fault_order != NULL && !order_fault(fault)) {
        (void)fprintf(stderr, "KEYDB_FAULT %s is no fault\n", fault);
        abort();
    }
    if (clock != NULL && !share_clock(clock)) {
        (void)fprintf(stderr, "KEYDB_CLOCK %s cannot be read\n", clock);
        abort();
    }
}
