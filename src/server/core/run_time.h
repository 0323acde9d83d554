/* The time with which commands run. It decides what has expired for them, and goes with what they do to the peers of an
 * active server. These are promised times: no command that runs or will run uses one below. So the time never falls
 * below a promise, wherever the machine's clock jumps, and a promise waits for commands that run with an earlier one.
 *
 * While the journal does not stamp, it is the wall clock, for one load. Else a worker publishes its time and reads the
 * floor behind that; whoever promises raises the floor first, and reads the workers' times behind that, with a heavy
 * fence in between: a worker that did not see the floor is seen by it. */
#pragma once

#include "base/compiler.h"
#include "server/core/server.h"
#include "server/core/worker.h"

#include <stdint.h>

int64_t run_time_hold(struct worker *worker, int64_t now_ms);

/* The time for a command that begins at `tick`, a reading of tick_now in this thread. Commands that change data have
 * passed the gate: promises wait for no others. */
static ALWAYS_INLINE int64_t run_time_at(struct worker *worker, uint64_t tick)
{
    const int64_t now_ms = worker_time_at(worker, tick);

    return LIKELY(!journal_is_stamping(&worker->server->journal)) ? now_ms : run_time_hold(worker, now_ms);
}
static inline int64_t run_time_now(struct worker *worker)
{
    return run_time_at(worker, tick_now());
}

/* Returns a time below which no command runs or will run from here on; never less than it returned before. Worker 0,
 * inside of the gate: so nobody is alone. */
int64_t run_time_promise(struct server *server, int64_t now_ms);
/* No command runs with a time below this one. With the gate owned. */
void run_time_raise(int64_t least_ms);
