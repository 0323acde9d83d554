#include "base/gate.h"

#include "base/thread.h"

#include <sched.h>

/* Members to wake. Waking is a system call, so it is done after the lock's release. A member may be here twice, as the
 * head of the queue and as a waiting member. */
struct wakes {
    unsigned count;
    struct {
        gate_wake_fn wake;
        void *context;
    } items[GATE_MEMBERS_MOST + 4];
};

THREAD_LOCAL const struct gate_member *gate_alone_here; /* global: see the header */
static _Atomic bool has_traffic; /* atomic, relaxed: written while no second thread passes gates */

void gate_traffic_begin(void)
{
    assert(!gate_has_traffic());
    atomic_store_explicit(&has_traffic, true, memory_order_relaxed);
}

void gate_traffic_end(void)
{
    assert(gate_has_traffic());
    atomic_store_explicit(&has_traffic, false, memory_order_relaxed);
}

bool gate_has_traffic(void)
{
    return atomic_load_explicit(&has_traffic, memory_order_relaxed);
}

void gate_assert_main_alone(void)
{
    thread_assert_main();
    gate_assert_no_traffic();
}

/* The first thread that uses a member has it from then on. */
static void gate_assert_own_thread(struct gate_member *member)
{
    if (member->thread == 0)
        member->thread = spinlock_self_id();
    assert(member->thread == spinlock_self);
}

static void become_alone(const struct gate_member *member)
{
    assert(gate_alone_here == NULL);
    gate_alone_here = member;
}

static void end_alone(const struct gate_member *member)
{
    assert(gate_alone_here == member);
    gate_alone_here = NULL;
}

void gate_help_begin(const struct gate_member *member)
{
    become_alone(member);
}

void gate_help_end(const struct gate_member *member)
{
    end_alone(member);
}

static void acquire(struct gate *gate, struct wakes *wakes) ACQUIRES(gate->lock)
{
    wakes->count = 0;
    spinlock_acquire(&gate->lock);
}

static void wake_later(struct wakes *wakes, const struct gate_member *member)
{
    assert(wakes->count < countof(wakes->items));
    wakes->items[wakes->count].wake = member->wake;
    wakes->items[wakes->count].context = member->wake_context;
    wakes->count++;
}

static void release_and_wake(struct gate *gate, const struct wakes *wakes) RELEASES(gate->lock)
{
    spinlock_release(&gate->lock);
    for (unsigned i = 0; i < wakes->count; i++)
        wakes->items[i].wake(wakes->items[i].context);
}

void gate_init(struct gate *gate)
{
    atomic_init(&gate->state, GATE_OPEN);
    spinlock_init(&gate->lock, LOCK_GATE);
    list_init(&gate->members);
    list_init(&gate->queue);
    gate->owner = NULL;
    gate->escalating = NULL;
    gate->member_count = 0;
}

void gate_fini(struct gate *gate)
{
    assert(list_is_empty(&gate->members));
}

void gate_join(struct gate *gate, struct gate_member *member, gate_wake_fn wake, void *context)
{
    atomic_init(&member->inside, 0);
    member->waiting = false;
    member->queued = false;
    member->thread = 0;
    list_node_init(&member->queue_node);
    list_node_init(&member->member_node);
    member->gate = gate;
    member->wake = wake;
    member->wake_context = context;
    spinlock_acquire(&gate->lock);
    list_push_back(&gate->members, &member->member_node);
    gate->member_count++;
    assert(gate->member_count <= GATE_MEMBERS_MOST);
    spinlock_release(&gate->lock);
}

static struct gate_member *queue_head_locked(struct gate *gate)
{
    if (list_is_empty(&gate->queue))
        return NULL;
    return container_of(list_first(&gate->queue), struct gate_member, queue_node);
}

static bool somebody_waits_locked(const struct gate *gate)
{
    LIST_FOREACH(node, &gate->members) {
        if (container_of(node, struct gate_member, member_node)->waiting)
            return true;
    }
    return false;
}

/* Reads flags that only their owners write: after fence_heavy a zero means "out until the gate opens". */
static bool all_out_locked(const struct gate *gate, const struct gate_member *but)
{
    LIST_FOREACH(node, &gate->members) {
        const struct gate_member *member = container_of(node, struct gate_member, member_node);

        if (member != but && atomic_load_explicit(&member->inside, memory_order_acquire) != 0)
            return false;
    }
    return true;
}

static bool all_out(struct gate *gate, const struct gate_member *but)
{
    bool out;

    spinlock_acquire(&gate->lock);
    out = all_out_locked(gate, but);
    spinlock_release(&gate->lock);
    return out;
}

static void wake_head_locked(struct gate *gate, struct wakes *wakes)
{
    const struct gate_member *head = queue_head_locked(gate);

    if (head != NULL)
        wake_later(wakes, head);
}

static bool is_closed_locked(const struct gate *gate)
{
    return atomic_load_explicit(&gate->state, memory_order_relaxed) == GATE_CLOSED;
}

/* Everybody who waited has been inside: now the next owner may close it. */
static void settle_locked(struct gate *gate, struct wakes *wakes)
{
    if (atomic_load_explicit(&gate->state, memory_order_relaxed) != GATE_OPEN_TO_WAITERS || somebody_waits_locked(gate))
        return;
    atomic_store_explicit(&gate->state, GATE_OPEN, memory_order_release);
    wake_head_locked(gate, wakes);
}

static void reopen_locked(struct gate *gate, struct wakes *wakes)
{
    atomic_store_explicit(&gate->state, GATE_OPEN_TO_WAITERS, memory_order_release);
    settle_locked(gate, wakes);
    LIST_FOREACH(node, &gate->members) {
        const struct gate_member *member = container_of(node, struct gate_member, member_node);

        if (member->waiting || member->queued)
            wake_later(wakes, member);
    }
}

static bool withdraw_locked(struct gate_member *member, struct wakes *wakes)
{
    struct gate *gate = member->gate;
    bool was_head = queue_head_locked(gate) == member;

    if (!member->queued)
        return false;
    list_remove(&member->queue_node);
    member->queued = false;
    if (was_head && gate->owner == NULL && gate->escalating == NULL)
        reopen_locked(gate, wakes);
    return true;
}

void gate_part(struct gate_member *member)
{
    struct gate *gate = member->gate;
    struct wakes wakes;

    gate_assert_outside(member);
    acquire(gate, &wakes);
    assert(gate->owner != member);
    (void)withdraw_locked(member, &wakes);
    list_remove(&member->member_node);
    gate->member_count--;
    member->waiting = false;
    settle_locked(gate, &wakes);
    if (is_closed_locked(gate) && gate->owner == NULL)
        wake_head_locked(gate, &wakes);
    release_and_wake(gate, &wakes);
}

bool gate_enter_slow(struct gate_member *member)
{
    struct gate *gate = member->gate;
    struct wakes wakes;
    bool entered = false;

    gate_assert_own_thread(member);
    gate_assert_inside(member);
    /* Step back first, so that who closes never waits for a thread that waits for this lock. */
    atomic_store_explicit(&member->inside, 0, memory_order_release);
    acquire(gate, &wakes);
    if (!is_closed_locked(gate)) {
        atomic_store_explicit(&member->inside, 1, memory_order_relaxed);
        member->waiting = false;
        settle_locked(gate, &wakes);
        entered = true; /* closing takes the lock: it comes after us and sees the flag */
    } else {
        member->waiting = true;
        if (gate->owner == NULL && gate->escalating == NULL && all_out_locked(gate, NULL))
            wake_head_locked(gate, &wakes); /* it may have seen us inside a moment ago */
    }
    release_and_wake(gate, &wakes);
    return entered;
}

void gate_leave_slow(struct gate_member *member)
{
    struct gate *gate = member->gate;
    struct wakes wakes;

    gate_assert_own_thread(member);
    gate_assert_outside(member);
    acquire(gate, &wakes);
    if (is_closed_locked(gate) && gate->owner == NULL && all_out_locked(gate, NULL))
        wake_head_locked(gate, &wakes);
    release_and_wake(gate, &wakes);
}

bool gate_try_own(struct gate_member *member, unsigned spin_count)
{
    struct gate *gate = member->gate;
    struct wakes wakes;
    bool mine = false;

    gate_assert_own_thread(member);
    gate_assert_outside(member);
    acquire(gate, &wakes);
    member->waiting = false; /* it asks for the gate: that is its turn */
    settle_locked(gate, &wakes);
    if (!member->queued) {
        list_push_back(&gate->queue, &member->queue_node);
        member->queued = true;
    }
    if (queue_head_locked(gate) == member && gate->owner == NULL && gate->escalating == NULL) {
        mine = atomic_load_explicit(&gate->state, memory_order_relaxed) != GATE_OPEN_TO_WAITERS;
        if (mine)
            atomic_store_explicit(&gate->state, GATE_CLOSED, memory_order_release);
    }
    release_and_wake(gate, &wakes);
    if (!mine)
        return false;
    fence_heavy();
    for (unsigned i = 0; !all_out(gate, NULL); i++) {
        if (i >= spin_count)
            return false; /* the last one out wakes us */
        fence_pause();
    }
    spinlock_acquire(&gate->lock);
    /* Somebody may have escalated, descended and so opened it again while we looked: then we were woken, too. */
    if (gate->escalating == NULL && is_closed_locked(gate) && all_out_locked(gate, NULL)) {
        gate->owner = member;
        list_remove(&member->queue_node);
        member->queued = false;
    }
    mine = gate->owner == member;
    spinlock_release(&gate->lock);
    if (mine)
        become_alone(member);
    return mine;
}

void gate_withdraw(struct gate_member *member)
{
    struct gate *gate = member->gate;
    struct wakes wakes;

    gate_assert_own_thread(member);
    acquire(gate, &wakes);
    /* Asking for the gate ended the member's wait for an open gate; now it has to try to enter again. */
    if (withdraw_locked(member, &wakes))
        wake_later(&wakes, member);
    release_and_wake(gate, &wakes);
}

void gate_rest(struct gate_member *member)
{
    struct gate *gate = member->gate;
    struct wakes wakes;

    gate_assert_own_thread(member);
    gate_assert_outside(member);
    acquire(gate, &wakes);
    (void)withdraw_locked(member, &wakes);
    member->waiting = false;
    member->thread = 0;
    settle_locked(gate, &wakes);
    release_and_wake(gate, &wakes);
    if (gate_alone_here == member)
        end_alone(member);
}

bool gate_is_owner(struct gate_member *member)
{
    struct gate *gate = member->gate;
    bool is_owner;

    spinlock_acquire(&gate->lock);
    is_owner = gate->owner == member;
    spinlock_release(&gate->lock);
    return is_owner;
}

void gate_hand_over(struct gate_member *member)
{
    gate_assert_own_thread(member);
    end_alone(member);
    member->thread = 0;
}

void gate_take_over(struct gate_member *member)
{
    assert(member->thread == 0);
    assert(gate_is_owner(member));
    member->thread = spinlock_self_id();
    become_alone(member);
}

void gate_open(struct gate_member *member)
{
    struct gate *gate = member->gate;
    struct wakes wakes;

    gate_assert_own_thread(member);
    end_alone(member);
    acquire(gate, &wakes);
    assert(gate->owner == member);
    gate->owner = NULL;
    reopen_locked(gate, &wakes);
    release_and_wake(gate, &wakes);
}

void gate_escalate(struct gate_member *member)
{
    struct gate *gate = member->gate;

    gate_assert_own_thread(member);
    gate_assert_inside(member);
    spinlock_acquire(&gate->lock);
    assert(gate->escalating == NULL && gate->owner == NULL); /* we are inside: nobody can own it */
    gate->escalating = member;
    atomic_store_explicit(&gate->state, GATE_CLOSED, memory_order_release);
    spinlock_release(&gate->lock);
    fence_heavy();
    for (unsigned i = 0; !all_out(gate, member); i++) {
        if (i % 200 == 199)
            sched_yield();
        fence_pause();
    }
    become_alone(member);
}

void gate_descend(struct gate_member *member)
{
    struct gate *gate = member->gate;
    struct wakes wakes;

    gate_assert_own_thread(member);
    gate_assert_inside(member);
    end_alone(member);
    acquire(gate, &wakes);
    assert(gate->escalating == member);
    gate->escalating = NULL;
    reopen_locked(gate, &wakes);
    release_and_wake(gate, &wakes);
}
