#include "store/horizon.h"

#include "base/assert.h"
#include "base/gate.h"
#include "base/mem.h"

#include <string.h>

void horizon_init(struct horizon *horizon, unsigned database_count)
{
    assert(database_count != 0);
    atomic_init(&horizon->frontier, 0);
    atomic_init(&horizon->wall, 0);
    atomic_init(&horizon->floor, 0);
    atomic_init(&horizon->freed, 0);
    atomic_init(&horizon->may_evict, false);
    horizon->flushes = mem_alloc_zero((database_count + 1) * sizeof(*horizon->flushes));
    horizon->late_flushes = mem_alloc_zero((database_count + 1) * sizeof(*horizon->late_flushes));
    horizon->database_count = database_count;
}

void horizon_fini(struct horizon *horizon)
{
    mem_free(horizon->flushes);
    mem_free(horizon->late_flushes);
    horizon->flushes = NULL;
    horizon->late_flushes = NULL;
}

struct merge_horizon horizon_of(const struct horizon *horizon, unsigned db)
{
    assert(db <= horizon->database_count);
    return (struct merge_horizon){.frontier = horizon_frontier(horizon),
                                  .wall = horizon_wall(horizon),
                                  .floor = horizon_floor(horizon),
                                  .flush = horizon->flushes[db]};
}

void horizon_raise(struct horizon *horizon, uint64_t frontier, int64_t wall)
{
    if (frontier > atomic_load_explicit(&horizon->frontier, memory_order_relaxed))
        atomic_store_explicit(&horizon->frontier, frontier, memory_order_release);
    if (wall > atomic_load_explicit(&horizon->wall, memory_order_relaxed))
        atomic_store_explicit(&horizon->wall, wall, memory_order_release);
}

void horizon_allow_evictions(struct horizon *horizon, bool may)
{
    if (may != horizon_may_evict(horizon))
        atomic_store_explicit(&horizon->may_evict, may, memory_order_relaxed);
}

void horizon_raise_floor(struct horizon *horizon, uint64_t stamp)
{
    uint64_t before = atomic_load_explicit(&horizon->floor, memory_order_relaxed);

    while (before < stamp && !atomic_compare_exchange_weak_explicit(&horizon->floor, &before, stamp,
                                                                    memory_order_acq_rel, memory_order_relaxed)) {
    }
}

void horizon_raise_freed(struct horizon *horizon, int64_t wall)
{
    int64_t before = atomic_load_explicit(&horizon->freed, memory_order_relaxed);

    while (before < wall && !atomic_compare_exchange_weak_explicit(&horizon->freed, &before, wall, memory_order_relaxed,
                                                                   memory_order_relaxed)) {
    }
}

void horizon_note_flush(struct horizon *horizon, unsigned db, struct merge_place flush)
{
    gate_assert_alone();
    assert(db <= horizon->database_count);
    if (!merge_place_before(horizon->flushes[db], flush))
        return;
    horizon->flushes[db] = flush;
    horizon->late_flushes[db] = false;
}

bool horizon_has_late_flush(const struct horizon *horizon, unsigned db)
{
    assert(db <= horizon->database_count);
    return horizon->late_flushes[db];
}

void horizon_note_late_flush(struct horizon *horizon, unsigned db)
{
    gate_assert_alone();
    assert(db < horizon->database_count); /* all operations on libraries overwrite: a missing one is the same */
    horizon->late_flushes[db] = true;
}

void horizon_forget_late_flush(struct horizon *horizon, unsigned db)
{
    assert(db <= horizon->database_count);
    horizon->late_flushes[db] = false;
}

void horizon_replace_past(struct horizon *horizon, uint64_t floor, const struct merge_place *flushes)
{
    gate_assert_alone();
    atomic_store_explicit(&horizon->floor, floor, memory_order_release);
    memcpy(horizon->flushes, flushes, (horizon->database_count + 1) * sizeof(*flushes));
    memset(horizon->late_flushes, 0, (horizon->database_count + 1) * sizeof(*horizon->late_flushes));
}
