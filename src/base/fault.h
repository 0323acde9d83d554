/* Injected faults, for tests: the nth call of a kind fails. While no fault is armed, this costs one branch on a
 * constant flag.
 *
 *     for (uint64_t nth = 0; fault_arm(FAULT_FILE | FAULT_MEMORY, nth); nth++) {
 *         enum status status = rdb_save(snapshot, path);
 *         expect(fault_fired() == (status != STATUS_OK));
 *     }
 * When a round ends without a fault, the next fault_arm disarms and returns false, and the loop ends. One thread arms,
 * while the other threads make no such calls. Counting is atomic, so the calls themselves may come from any thread. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum fault_kind {
    FAULT_MEMORY = 1 << 0, /* mem_try_* return NULL */
    FAULT_OPEN = 1 << 1,
    FAULT_READ = 1 << 2,
    FAULT_WRITE = 1 << 3,
    FAULT_SYNC = 1 << 4, /* files and folders */
    FAULT_RENAME = 1 << 5,
    FAULT_REMOVE = 1 << 6,
    FAULT_TRUNCATE = 1 << 7,
    FAULT_CACHE = 1 << 8, /* a part of a file is not in the kernel's memory */
    FAULT_FILE = FAULT_OPEN | FAULT_READ | FAULT_WRITE | FAULT_SYNC | FAULT_RENAME | FAULT_REMOVE | FAULT_TRUNCATE
};

enum fault_how {
    FAULT_HOW_EIO = 0,
    FAULT_HOW_ENOSPC,
    /* A read or write moves half of its bytes and succeeds: the caller must continue it. Other calls: EIO. */
    FAULT_HOW_SHORT,
    FAULT_HOW_TORN,     /* a write moves half of its bytes, and the next write fails with ENOSPC. Other calls: EIO */
    FAULT_HOW_INTERRUPT /* EINTR, once: the caller must survive it */
};

must_check bool fault_arm(unsigned kinds, uint64_t nth); /* with FAULT_HOW_EIO; nth 0 is the first call */
must_check bool fault_arm_how(unsigned kinds, uint64_t nth, enum fault_how how);
void fault_disarm(void);
/* For whole programs, before main (tests/fault/preload.c): arms the same fault. When it fires, the program writes
 * "fault: NAME" to standard error. Always returns true. */
bool fault_order(unsigned kinds, uint64_t nth, enum fault_how how, const char *name);
bool fault_fired(void);    /* true from the moment the armed fault has fired until the next fault_arm */
uint64_t fault_hits(void); /* calls counted since the last fault_arm */

extern bool fault_is_armed; /* global: written by fault_arm and fault_disarm while other threads are quiet */
must_check bool fault_hit_slow(unsigned kind, enum fault_how *how);

/* The code that is about to make the call asks this first. True: fail as `*how` says. */
static inline must_check bool fault_hit(unsigned kind, enum fault_how *how)
{
    return UNLIKELY(fault_is_armed) && fault_hit_slow(kind, how);
}
