/* Faults on order, for tests: the nth call of a kind fails. Costs one branch on a constant flag while nothing is armed.
 *
 *     for (uint64_t nth = 0; fault_arm(FAULT_FILE | FAULT_MEMORY, nth); nth++) {
 *         enum status status = rdb_save(snapshot, path);
 *         expect(fault_fired() == (status != STATUS_OK));
 *     }
 * The loop ends, disarmed, after the first round in which no fault fired: arming again for a later call than the first
 * answers false then. Arm from one thread while the others are quiet; counting is atomic, so hits may come
 * from any thread. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum fault_kind {
    FAULT_MEMORY = 1 << 0, /* mem_try_* answers NULL */
    FAULT_OPEN = 1 << 1,
    FAULT_READ = 1 << 2,
    FAULT_WRITE = 1 << 3,
    FAULT_SYNC = 1 << 4, /* files and folders */
    FAULT_RENAME = 1 << 5,
    FAULT_REMOVE = 1 << 6,
    FAULT_TRUNCATE = 1 << 7,
    FAULT_FILE = FAULT_OPEN | FAULT_READ | FAULT_WRITE | FAULT_SYNC | FAULT_RENAME | FAULT_REMOVE | FAULT_TRUNCATE
};

enum fault_how {
    FAULT_HOW_EIO = 0,
    FAULT_HOW_ENOSPC,
    FAULT_HOW_SHORT,    /* a read or write moves half of its bytes and succeeds: it must be continued. Others: EIO */
    FAULT_HOW_TORN,     /* a write moves half of its bytes and the next write fails with ENOSPC. Others: EIO */
    FAULT_HOW_INTERRUPT /* EINTR, once: must be survived */
};

must_check bool fault_arm(unsigned kinds, uint64_t nth); /* with FAULT_HOW_EIO; the first call is nth 0 */
must_check bool fault_arm_how(unsigned kinds, uint64_t nth, enum fault_how how);
void fault_disarm(void);
/* For whole programs, at start: the same, and standard error says "fault: NAME" when it happens. Always true. */
bool fault_order(unsigned kinds, uint64_t nth, enum fault_how how, const char *name);
bool fault_fired(void);    /* has the armed fault happened? Stays true until armed again */
uint64_t fault_hits(void); /* calls counted since the last arm */

extern bool fault_is_armed; /* global: written by fault_arm and fault_disarm while other threads are quiet */
must_check bool fault_hit_slow(unsigned kind, enum fault_how *how);

/* Asked by the code that would make the call. True: fail in the way `*how` says. */
static inline must_check bool fault_hit(unsigned kind, enum fault_how *how)
{
    return UNLIKELY(fault_is_armed) && fault_hit_slow(kind, how);
}
