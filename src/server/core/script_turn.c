#include "server/core/script_turn.h"

void script_turn_init(struct script_turn *turn)
{
    spinlock_init(&turn->alone.lock, LOCK_STRIPE);
    atomic_init(&turn->beside, 0);
}

static bool is_taken(const struct script_turn *turn)
{
    return atomic_load_explicit(&turn->alone.lock.holder, memory_order_acquire) != 0;
}

bool script_turn_take(struct script_turn *turn, struct store *store, unsigned spin_count)
{
    uint32_t beside;

    if (!spinlock_acquire_bounded(&turn->alone.lock, spin_count))
        return false;
    /* A write, so that who joins comes before it in the order of this word, or sees the lock. */
    beside = atomic_fetch_add_explicit(&turn->beside, 0, memory_order_acq_rel);
    for (unsigned i = 0; beside != 0; i++) {
        if (i == spin_count) {
            script_turn_give(turn, store);
            return false;
        }
        fence_pause();
        beside = atomic_load_explicit(&turn->beside, memory_order_acquire);
    }
    return true;
}

void script_turn_give(struct script_turn *turn, struct store *store)
{
    stripe_release(store, &turn->alone);
}

bool script_turn_join(struct script_turn *turn, struct store *store, bool passes, unsigned spin_count)
{
    for (unsigned i = 0;; i++) {
        if (!is_taken(turn) && (passes || !stripe_has_waiters(&turn->alone) || !script_turn_is_shared(turn))) {
            (void)atomic_fetch_add_explicit(&turn->beside, 1, memory_order_acq_rel);
            if (LIKELY(!is_taken(turn)))
                return true;
            script_turn_leave(turn, store);
        }
        if (i >= spin_count)
            return false;
        fence_pause();
    }
}

void script_turn_leave(struct script_turn *turn, struct store *store)
{
    const uint32_t beside = atomic_fetch_sub_explicit(&turn->beside, 1, memory_order_acq_rel);
    uint64_t waiters = 0;

    assert(beside != 0);
    fence_light(); /* pairs with stripe_ask */
    if (beside == 1)
        waiters = stripe_take_waiters(&turn->alone);
    if (UNLIKELY(waiters != 0) && store->wake != NULL)
        store->wake(waiters);
}

bool script_turn_wait(struct script_turn *turn, unsigned thread_index)
{
    const bool asked = stripe_ask(&turn->alone, thread_index);

    if (is_taken(turn) || script_turn_is_shared(turn))
        return true;
    if (!asked)
        stripe_ask_no_more(&turn->alone, thread_index);
    return false;
}
