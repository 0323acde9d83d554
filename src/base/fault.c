#include "base/fault.h"

#include "base/assert.h"

#include <stddef.h>
#include <stdio.h>

bool fault_is_armed; /* global: see the header */

static unsigned armed_kinds; /* these: set while other threads are quiet */
static uint64_t armed_nth;
static enum fault_how armed_how;
static char ordered_name[32]; /* likewise; "": no message */
static _Atomic uint64_t hit_count;
static _Atomic bool has_fired;
static _Atomic bool torn_pending; /* FAULT_HOW_TORN: the first half is written */

bool fault_arm(unsigned kinds, uint64_t nth)
{
    return fault_arm_how(kinds, nth, FAULT_HOW_EIO);
}

bool fault_arm_how(unsigned kinds, uint64_t nth, enum fault_how how)
{
    if (nth > 0 && fault_is_armed && !fault_fired()) {
        fault_disarm();
        return false;
    }
    armed_kinds = kinds;
    armed_nth = nth;
    armed_how = how;
    atomic_store(&hit_count, 0);
    atomic_store(&has_fired, false);
    atomic_store(&torn_pending, false);
    fault_is_armed = true;
    return true;
}

bool fault_order(unsigned kinds, uint64_t nth, enum fault_how how, const char *name)
{
    (void)snprintf(ordered_name, sizeof(ordered_name), "%s", name);
    fault_is_armed = false;
    return fault_arm_how(kinds, nth, how);
}

void fault_disarm(void)
{
    fault_is_armed = false;
}

bool fault_fired(void)
{
    return atomic_load(&has_fired);
}

uint64_t fault_hits(void)
{
    return atomic_load(&hit_count);
}

/* Half a write is a success for who wrote; only a write tears, only reads and writes can be short. */
static enum fault_how how_for(unsigned kind)
{
    bool moves_bytes = (kind & (FAULT_READ | FAULT_WRITE)) != 0;

    if (armed_how == FAULT_HOW_SHORT)
        return moves_bytes ? FAULT_HOW_SHORT : FAULT_HOW_EIO;
    if (armed_how == FAULT_HOW_TORN)
        return kind == FAULT_WRITE ? FAULT_HOW_SHORT : FAULT_HOW_EIO;
    return armed_how;
}

bool fault_hit_slow(unsigned kind, enum fault_how *how)
{
    if ((armed_kinds & kind) == 0)
        return false;
    if (kind == FAULT_WRITE && atomic_exchange(&torn_pending, false)) {
        *how = FAULT_HOW_ENOSPC;
        return true;
    }
    if (atomic_fetch_add(&hit_count, 1) != armed_nth)
        return false;
    atomic_store(&has_fired, true);
    if (ordered_name[0] != '\0')
        (void)fprintf(stderr, "fault: %s\n", ordered_name);
    *how = how_for(kind);
    if (armed_how == FAULT_HOW_TORN && kind == FAULT_WRITE)
        atomic_store(&torn_pending, true);
    return true;
}
