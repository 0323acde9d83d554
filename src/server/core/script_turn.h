/* The scripts' turn: which scripts may run at the same time. It guards no data.
 *
 * A script that may come to need more than its stripes runs alone among the scripts: of two that escalate (dispatch.h),
 * each would wait for the other to leave. Scripts that never escalate run beside each other. Both kinds take the turn
 * before their stripes, inside the gate.
 *
 *     alone      the lock is held, `beside` has come to 0 since
 *     beside     counted in `beside`, and the lock was free after that
 *
 * Each side writes its own word and then reads the other's. While a script that wants to be alone spins for it, or
 * waits for a wake (the mask), others that come join nobody: so those inside become fewer, and the last one wakes.
 * Passing it is for the time when a script is busy: those that want to be alone are refused then. */
#pragma once

#include "store/store.h"

struct script_turn {
    struct stripe alone;                   /* its lock, and the mask of who waits for the turn; no keys */
    CACHE_ALIGNED _Atomic uint32_t beside; /* atomic: acq_rel; the scripts that run beside each other */
};

void script_turn_init(struct script_turn *turn);

/* Try about `spin_count` times, with pauses. To be alone: */
must_check bool script_turn_take(struct script_turn *turn, struct store *store, unsigned spin_count);
void script_turn_give(struct script_turn *turn, struct store *store);
/* Beside others of the kind; `passes`: also past those that wait. */
must_check bool script_turn_join(struct script_turn *turn, struct store *store, bool passes, unsigned spin_count);
void script_turn_leave(struct script_turn *turn, struct store *store);

/* As stripe_wait: asks for a wake-up; false: nobody has the turn, so try again. */
must_check bool script_turn_wait(struct script_turn *turn, unsigned thread_index);

static inline bool script_turn_is_shared(const struct script_turn *turn)
{
    return atomic_load_explicit(&turn->beside, memory_order_acquire) != 0;
}
static inline bool script_turn_is_mine(const struct script_turn *turn) /* alone */
{
    return spinlock_is_mine(&turn->alone.lock);
}
