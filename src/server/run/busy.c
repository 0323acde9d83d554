#include "server/run/busy.h"

#include "base/assert.h"
#include "server/core/server.h"
#include "server/core/worker.h"

_Atomic uint32_t busy_state; /* global: see busy.h */

const char *busy_error(void)
{
    return atomic_load_explicit(&busy_state, memory_order_relaxed) == BUSY_FUNCTION
               ? "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
               : "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
}

void busy_begin(struct server *server, enum busy_state state)
{
    assert(worker_self() != NULL && state != BUSY_NOT && !busy_is_on());
    atomic_store_explicit(&busy_state, state, memory_order_release);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_wake_parked(&server->workers[i], PARKING_BUSY);
}

void busy_end(void)
{
    assert(worker_self() != NULL && busy_is_on());
    atomic_store_explicit(&busy_state, BUSY_NOT, memory_order_release);
}
