#include "active/room.h"

#include "base/log.h"
#include "base/status.h"
#include "server/core/worker.h"
#include "server/memory/memory_limit.h"

enum { BEYOND_PART = 10 }; /* of the limit */

static _Atomic bool is_waited_for; /* global: atomic, relaxed; of the one limit; worker 0 writes */
static _Atomic uint64_t waits;     /* global: likewise */

bool room_is_waited_for(void)
{
    return atomic_load_explicit(&is_waited_for, memory_order_relaxed);
}

uint64_t room_waits(void)
{
    return atomic_load_explicit(&waits, memory_order_relaxed);
}

static bool is_beyond(void)
{
    const uint64_t limit = atomic_load_explicit(&memory_limit, memory_order_relaxed);

    return limit != 0 && memory_counted() > limit + limit / BEYOND_PART;
}

static void note(bool waited)
{
    if (LIKELY(waited == room_is_waited_for()))
        return;
    atomic_store_explicit(&is_waited_for, waited, memory_order_relaxed);
    if (waited) {
        atomic_fetch_add_explicit(&waits, 1, memory_order_relaxed);
        log_warning("Memory is a tenth above maxmemory and no key can be evicted now: operations of peers wait, and "
                    "this node falls behind until there is room");
    } else {
        log_notice("There is room in memory again: operations of peers are taken");
    }
}

bool room_is_there(struct worker *worker)
{
    worker_assert_zero(worker);
    worker_assert_outside(worker);
    if (UNLIKELY(memory_limit_is_reached()))
        status_ignore(memory_make_room(worker), "a little more is allowed");
    note(is_beyond());
    return !room_is_waited_for();
}
