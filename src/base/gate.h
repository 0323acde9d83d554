/* The gate: a lock that many threads pass at no cost and that one thread can close to be alone.
 *
 * Every thread that may touch shared data is a member with a flag `inside`: set while it executes commands, clear
 * while it does I/O or waits. Who wants to be alone queues as owner, closes the gate, and owns it once nobody is
 * inside. Owning never blocks a thread: gate_try_own answers "not yet" and the member is told through `wake` when it
 * should ask again.
 *
 * Invariants
 *  1. inside(A) and owned by B != A never hold together: both sides write their flag, then read the other's (fence.h).
 *  2. One owner at a time; owners are served in the order they asked. Who escalates goes first: it is inside and holds
 *     stripes, the others have not begun.
 *  3. After the gate opens every member that found it closed enters once before it closes again, so that a flood of
 *     exclusive commands starves nobody.
 *  4. A member is used by one thread, which it gets at its first call and loses by gate_rest or gate_hand_over.
 * Lock: `lock` (rank LOCK_GATE) guards the queue and the waiting marks; it is held for a few instructions. */
#pragma once

#include "base/compiler.h"
#include "base/fence.h"
#include "base/list.h"
#include "base/spinlock.h"

enum { GATE_MEMBERS_MOST = 128 };

/* From any thread, under no lock; once more perhaps just after the member has parted. */
typedef void (*gate_wake_fn)(void *context);

struct gate;

struct CACHE_ALIGNED gate_member {
    _Atomic uint32_t inside;       /* atomic: owner writes, who closes reads; ordered by fences */
    bool waiting GUARDED_BY(lock); /* found the gate closed and has not entered since */
    bool queued GUARDED_BY(lock);
    struct list_node queue_node GUARDED_BY(lock);
    struct list_node member_node GUARDED_BY(lock);
    uint32_t thread;    /* owner: the member's thread: its spinlock_self_id; 0: it has none */
    struct gate *gate;  /* const */
    gate_wake_fn wake;  /* const */
    void *wake_context; /* const */
};

enum gate_state {
    GATE_OPEN = 0,
    GATE_CLOSED = 1,
    GATE_OPEN_TO_WAITERS = 2 /* open, and stays so until everybody who waited has entered (invariant 3) */
};

struct gate {
    CACHE_ALIGNED _Atomic uint32_t state; /* atomic: enum gate_state; read on each entry, written under lock */
    CACHE_ALIGNED struct spinlock lock;
    struct list members GUARDED_BY(lock);
    unsigned member_count GUARDED_BY(lock);
    struct list queue GUARDED_BY(lock); /* who wants to own it, first come first */
    struct gate_member *owner GUARDED_BY(lock);
    struct gate_member *escalating GUARDED_BY(lock);
};

void gate_init(struct gate *gate);
void gate_fini(struct gate *gate); /* no members are left */
void gate_join(struct gate *gate, struct gate_member *member, gate_wake_fn wake, void *context);
void gate_part(struct gate_member *member); /* not inside, not owner; leaves the queue; any thread */

/* --- who is where; any thread asks about itself --- */

static inline bool gate_is_inside(const struct gate_member *member)
{
    return atomic_load_explicit(&member->inside, memory_order_relaxed) != 0;
}

static inline void gate_assert_inside(const struct gate_member *member)
{
    assert(gate_is_inside(member));
}

static inline void gate_assert_outside(const struct gate_member *member)
{
    assert(!gate_is_inside(member));
}

/* The member by which this thread is alone, owning its gate or having escalated; NULL: it is not. */
extern THREAD_LOCAL const struct gate_member *gate_alone_here;

static inline void gate_assert_owned(const struct gate_member *member)
{
    assert(gate_alone_here == member);
    gate_assert_outside(member);
}

/* Nothing else touches what is guarded: this thread is alone behind a gate, or there is no traffic through gates, as
 * the threads that pass them do not run yet, or have ended. Whoever starts and joins them says so, alone. */
void gate_traffic_begin(void);
void gate_traffic_end(void);
bool gate_has_traffic(void);
static inline bool gate_is_alone(void)
{
    return gate_alone_here != NULL || !gate_has_traffic();
}
static inline void gate_assert_alone(void)
{
    assert(gate_is_alone());
}
static inline void gate_assert_no_traffic(void)
{
    assert(!gate_has_traffic());
}
/* A thread that works for one that is alone, which waits for its end before it opens the gate, is alone like that one
 * meanwhile. `member`: what gate_alone_here is there. */
void gate_help_begin(const struct gate_member *member);
void gate_help_end(const struct gate_member *member);

/* --- by the member's own thread --- */
must_check bool gate_enter_slow(struct gate_member *member);
void gate_leave_slow(struct gate_member *member);

/* False: closed; the member will be woken when it is worth trying again. */
static inline must_check bool gate_enter(struct gate_member *member)
{
    gate_assert_outside(member);
    atomic_store_explicit(&member->inside, 1, memory_order_relaxed);
    fence_light();
    if (LIKELY(atomic_load_explicit(&member->gate->state, memory_order_acquire) == GATE_OPEN))
        return true;
    return gate_enter_slow(member);
}

static inline void gate_leave(struct gate_member *member)
{
    gate_assert_inside(member);
    atomic_store_explicit(&member->inside, 0, memory_order_release);
    fence_light();
    if (UNLIKELY(atomic_load_explicit(&member->gate->state, memory_order_relaxed) != GATE_OPEN))
        gate_leave_slow(member);
}

/* Ask for the gate (first call), or ask again (later calls). True: the caller is alone until gate_open. Not from
 * inside. It waits at most `spin_count` pauses for the others to leave, then answers false. */
must_check bool gate_try_own(struct gate_member *member, unsigned spin_count);
/* Give up a request that was not granted (its connection has gone). The member is woken: while it stood in the queue it
 * did not wait for the gate to open. */
void gate_withdraw(struct gate_member *member);
/* The member's thread ends, or rests for long: it gives up its request and its turn to enter, so that nobody waits for
 * it. It stays a member, and may come back, also with another thread; if it owns the gate that stays closed. */
void gate_rest(struct gate_member *member);
bool gate_is_owner(struct gate_member *member); /* any thread, while nobody else may own it */
/* An owned gate goes to another thread, with the member: from the one that gives it up, or that has ended, to the one
 * that takes it. */
void gate_hand_over(struct gate_member *member);
void gate_take_over(struct gate_member *member);
void gate_open(struct gate_member *member); /* wakes who waits or asks, but for this member: it is at work */
/* From inside: wait until everybody else is out, then be alone until gate_descend. At most one member may do so at a
 * time (the caller's own rule: one script); the others leave within microseconds, as nobody waits inside. */
void gate_escalate(struct gate_member *member);
void gate_descend(struct gate_member *member); /* still inside */
