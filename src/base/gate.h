/* The gate: a lock that many threads pass at almost no cost, and that one thread can close to be alone with all data.
 *
 * Every thread that may touch shared data is a member with a flag `inside`. The flag is set while the thread executes
 * commands, and clear while it does I/O or waits. A thread that wants to be alone queues as owner and closes the gate.
 * It owns the gate once no other thread is inside. This never blocks a thread: gate_try_own returns false, and `wake`
 * tells the member when to ask again.
 *
 * Invariants
 *  1. inside(A) and owned by B != A never hold together: both sides write their flag, then read the other's (fence.h).
 *  2. There is one owner at a time. Owners are served in the order in which they asked. A member that escalates goes
 *     first: it is inside and holds stripes, while the others have not begun.
 *  3. After the gate opens, every member that found it closed enters once before the gate closes again. So a flood of
 *     exclusive commands starves no member.
 *  4. One thread uses a member. The member gets this thread at its first call, and loses it by gate_rest or
 *     gate_hand_over.
 * Lock: `lock` (rank LOCK_GATE) guards the queue and the waiting marks. It is held for a few instructions. */
#pragma once

#include "base/compiler.h"
#include "base/fence.h"
#include "base/list.h"
#include "base/spinlock.h"

enum { GATE_MEMBERS_MOST = 128 };

/* Called from any thread, under no lock. A last call may come just after the member has parted. */
typedef void (*gate_wake_fn)(void *context);

struct gate;

struct CACHE_ALIGNED gate_member {
    /* atomic: the member's thread writes it, threads that close the gate read it; ordered by fences. */
    _Atomic uint32_t inside;
    bool waiting GUARDED_BY(lock); /* the member found the gate closed and has not entered since */
    bool queued GUARDED_BY(lock);
    struct list_node queue_node GUARDED_BY(lock);
    struct list_node member_node GUARDED_BY(lock);
    uint32_t thread;    /* owner: the member's thread; holds its spinlock_self_id, 0: no thread */
    struct gate *gate;  /* const */
    gate_wake_fn wake;  /* const */
    void *wake_context; /* const */
};

enum gate_state {
    GATE_OPEN = 0,
    GATE_CLOSED = 1,
    GATE_OPEN_TO_WAITERS = 2 /* open, and stays open until each member that waited has entered (invariant 3) */
};

struct gate {
    CACHE_ALIGNED _Atomic uint32_t state; /* atomic: enum gate_state; read on each entry, written under the lock */
    CACHE_ALIGNED struct spinlock lock;
    struct list members GUARDED_BY(lock);
    unsigned member_count GUARDED_BY(lock);
    struct list queue GUARDED_BY(lock); /* members that ask for the gate, first come first served */
    struct gate_member *owner GUARDED_BY(lock);
    struct gate_member *escalating GUARDED_BY(lock);
};

void gate_init(struct gate *gate);
void gate_fini(struct gate *gate); /* no members may be left */
void gate_join(struct gate *gate, struct gate_member *member, gate_wake_fn wake, void *context);
/* Any thread; the member must not be inside or owner; it leaves the queue. */
void gate_part(struct gate_member *member);

/* --- state of the gate; any thread may ask about itself --- */

static inline bool gate_is_inside(const struct gate_member *member)
{
    return atomic_load_explicit(&member->inside, memory_order_relaxed) != 0;
}

/* Members that are outside stay there. */
static inline bool gate_is_closed(const struct gate *gate)
{
    return atomic_load_explicit(&((struct gate *)(uintptr_t)gate)->state, memory_order_relaxed) == GATE_CLOSED;
}

static inline void gate_assert_inside(const struct gate_member *member)
{
    assert(gate_is_inside(member));
}

static inline void gate_assert_outside(const struct gate_member *member)
{
    assert(!gate_is_inside(member));
}

/* The member by which this thread is alone: it owns its gate or has escalated. NULL: this thread is not alone. */
extern THREAD_LOCAL const struct gate_member *gate_alone_here;

static inline void gate_assert_owned(const struct gate_member *member)
{
    assert(gate_alone_here == member);
    gate_assert_outside(member);
}

/* Whether other threads may touch guarded data. There is traffic from the moment when threads that pass gates are
 * started until they have ended. Without traffic a thread counts as alone. The thread that starts and joins the others
 * calls begin and end while it is alone. */
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
/* Where things are set up or torn down: this is the main thread, and there is no traffic. */
void gate_assert_main_alone(void);
/* A helper of a thread that is alone counts as alone, too, between these calls. The thread that is alone must wait for
 * the end of its helpers before it opens the gate. `member` is that thread's gate_alone_here. */
void gate_help_begin(const struct gate_member *member);
void gate_help_end(const struct gate_member *member);

/* --- calls by the member's own thread --- */
must_check bool gate_enter_slow(struct gate_member *member);
void gate_leave_slow(struct gate_member *member);

/* False: the gate is closed. `wake` tells the member when to try again. */
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

/* From inside: somebody waits until all have left. Whoever may stop leaves then. */
static inline bool gate_is_wanted(const struct gate_member *member)
{
    gate_assert_inside(member);
    return atomic_load_explicit(&member->gate->state, memory_order_relaxed) == GATE_CLOSED;
}

/* Asks for the gate; later calls ask again. True: the caller is alone until gate_open. Not from inside. It waits at
 * most `spin_count` pauses for the others to leave, then returns false. */
must_check bool gate_try_own(struct gate_member *member, unsigned spin_count);
/* Withdraws a request that was not granted (the client's connection has closed). The member is woken: while it was in
 * the queue it did not wait for the gate to open. */
void gate_withdraw(struct gate_member *member);
/* Call it when the member's thread ends or rests for long. The member gives up its request and its turn to enter, so no
 * thread waits for it. It stays a member and may return, also with another thread. If it owns the gate, the gate stays
 * closed. */
void gate_rest(struct gate_member *member);
bool gate_is_owner(struct gate_member *member); /* any thread, while no other thread may own the gate */
/* Hands an owned gate and its member to another thread. The old thread calls gate_hand_over, unless it has ended; the
 * new thread calls gate_take_over. */
void gate_hand_over(struct gate_member *member);
void gate_take_over(struct gate_member *member);
void gate_open(struct gate_member *member); /* wakes the members that wait or ask, except this one: it is running */
/* From inside: waits until all other members are outside, then is alone until gate_descend. At most one member may do
 * so at a time; the caller guarantees it (scripts that may escalate do not run beside each other). The others leave
 * within microseconds, since none waits inside. */
void gate_escalate(struct gate_member *member);
void gate_descend(struct gate_member *member); /* the member is still inside afterwards */
