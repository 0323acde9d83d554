#include "server/core/exclusive.h"

#include "server/core/server.h"

enum { GATE_SPINS = 2000 }; /* about 50 us: others leave the gate within that, unless a long command runs */

bool exclusive_own_gate(struct worker *worker)
{
    worker_assert_self(worker);
    worker->may_own_gate = true;
    return gate_try_own(&worker->member, GATE_SPINS);
}

bool exclusive_begin(struct worker *worker, enum gate_wish wish)
{
    bool owned = exclusive_own_gate(worker);

    if (owned)
        worker->gate_wishes &= ~(unsigned)wish;
    else
        worker->gate_wishes |= (unsigned)wish;
    return owned;
}

void exclusive_end(struct worker *worker)
{
    worker_assert_self(worker);
    worker->may_own_gate = false;
    /* The saved state is final: no thread may change data after it. The gate stays closed until all threads have
     * left. */
    if (server_is_stopping(worker->server))
        return;
    gate_open(&worker->member);
    /* A worker stands in the queue once, for all its requests: other requests have to ask again. */
    if (!list_is_empty(&worker->parking.gate))
        worker_wake_parked(worker, PARKING_GATE);
    else if (worker->gate_wishes != 0)
        worker_wake(worker);
}

void exclusive_drop(struct worker *worker, enum gate_wish wish)
{
    if (LIKELY(!exclusive_is_wished(worker, wish)))
        return;
    worker->gate_wishes &= ~(unsigned)wish;
    exclusive_stop_asking(worker);
}

void exclusive_stop_asking(struct worker *worker)
{
    worker_assert_self(worker);
    if (worker->may_own_gate && worker->parking.asked_count == 0 && worker->gate_wishes == 0) {
        worker->may_own_gate = false;
        gate_withdraw(&worker->member);
    }
}
