#include "server/run/busy.h"

#include "base/assert.h"
#include "server/core/server.h"
#include "server/core/worker.h"

_Atomic uint32_t busy_count; /* global: see busy.h */

const char *busy_error(void)
{
    return atomic_load_explicit(&busy_count, memory_order_relaxed) >= BUSY_FUNCTION
               ? "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
               : "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
}

void busy_begin(struct server *server, enum busy_kind kind)
{
    assert(worker_self() != NULL);
    (void)atomic_fetch_add_explicit(&busy_count, kind, memory_order_release);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_wake_parked(&server->workers[i], PARKING_BUSY);
}

void busy_end(enum busy_kind kind)
{
    assert(worker_self() != NULL && busy_is_on());
    (void)atomic_fetch_sub_explicit(&busy_count, kind, memory_order_release);
}
