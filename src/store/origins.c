#include "store/origins.h"

#include <string.h>

void origins_init(struct origins *origins)
{
    memset(origins, 0, sizeof(*origins));
    spinlock_init(&origins->lock, LOCK_ORIGINS);
}

void origins_set_own(struct origins *origins, uint64_t id)
{
    assert(id != 0);
    spinlock_acquire(&origins->lock);
    atomic_store_explicit(&origins->ids[VERSION_OWN_ORIGIN], id, memory_order_release);
    spinlock_release(&origins->lock);
}

static unsigned find(const struct origins *origins, uint64_t id)
{
    for (unsigned number = 0; number < ORIGINS_UNKNOWN; number++) {
        if (origins_id(origins, number) == id)
            return number;
    }
    return ORIGINS_UNKNOWN;
}

/* One that nobody had; else the one that is free for the longest: the fewest versions have it still. */
static unsigned choose_locked(const struct origins *origins) REQUIRES(origins->lock)
{
    unsigned best = ORIGINS_UNKNOWN;

    spinlock_assert_held(&origins->lock);
    for (unsigned number = 1; number < ORIGINS_UNKNOWN; number++) {
        if (origins_id(origins, number) == 0)
            return number;
        if (origins->ended[number] != 0 && (best == ORIGINS_UNKNOWN || origins->ended[number] < origins->ended[best]))
            best = number;
    }
    return best;
}

unsigned origins_number(struct origins *origins, uint64_t id)
{
    unsigned number = find(origins, id);

    assert(id != 0);
    if (number != ORIGINS_UNKNOWN)
        return number;
    spinlock_acquire(&origins->lock);
    number = find(origins, id);
    if (number == ORIGINS_UNKNOWN)
        number = choose_locked(origins);
    if (number == ORIGINS_UNKNOWN) {
        atomic_fetch_add_explicit(&origins->unnumbered, 1, memory_order_relaxed);
    } else if (origins_id(origins, number) != id) {
        const uint64_t before = atomic_load_explicit(&origins->since[number], memory_order_relaxed);

        atomic_store_explicit(&origins->since[number], MAX(before, origins->ended[number]), memory_order_relaxed);
        atomic_store_explicit(&origins->ids[number], id, memory_order_release);
        origins->ended[number] = 0;
    }
    spinlock_release(&origins->lock);
    return number;
}

void origins_end(struct origins *origins, uint64_t id, uint64_t last)
{
    unsigned number;

    assert(last != 0);
    spinlock_acquire(&origins->lock);
    number = find(origins, id);
    assert(number != VERSION_OWN_ORIGIN);
    if (number != ORIGINS_UNKNOWN && origins->ended[number] == 0)
        origins->ended[number] = last;
    spinlock_release(&origins->lock);
}

void origins_facts(struct origins *origins, struct origins_facts *facts)
{
    *facts = (struct origins_facts){0};
    spinlock_acquire(&origins->lock);
    for (unsigned number = 0; number < ORIGINS_UNKNOWN; number++) {
        if (origins_id(origins, number) != 0)
            facts->used++;
        if (number != VERSION_OWN_ORIGIN && (origins_id(origins, number) == 0 || origins->ended[number] != 0))
            facts->free++;
    }
    facts->unnumbered = atomic_load_explicit(&origins->unnumbered, memory_order_relaxed);
    spinlock_release(&origins->lock);
}
