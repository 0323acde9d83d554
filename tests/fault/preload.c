/* A library for LD_PRELOAD, for servers whose power or disk fails. tests/fault/disk.py also loads it, to apply the
 * record. Environment variables control it:
 *
 *     KEYDB_POWER_CUT=FOLDER         records the changes of the files in this folder (base/power_cut.h); the program
 *                                    that starts the server has begun the record
 *     KEYDB_FAULT=KIND:NUMBER[:HOW]  makes one call of base/file.h fail. KIND is open, read, write, sync, rename,
 *                                    remove or truncate; the first call is number 0. HOW is eio (the default), enospc,
 *                                    short, torn or interrupt. Standard error then says "fault: KIND:NUMBER[:HOW]".
 *                                    KIND fork: that call of fork fails with EAGAIN */
#include "base/compiler.h"
#include "base/fault.h"
#include "base/power_cut.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

    if (folder != NULL)
        power_cut_join(folder);
    if (fault != NULL && fault_order != NULL && !order_fault(fault)) {
        (void)fprintf(stderr, "KEYDB_FAULT %s is no fault\n", fault);
        abort();
    }
}
