#include "server/core/run_time.h"

#include "base/fence.h"

static struct {
    _Atomic int64_t floor_ms; /* atomic: no command that begins now gets less; relaxed, ordered by fences */
    int64_t promised_ms;      /* owner: worker 0, or who owns the gate */
} times;

/* Inside a script that runs for long other clients' commands run. The script still runs with what is published, and
 * theirs are not earlier. */
int64_t run_time_hold(struct worker *worker, int64_t now_ms)
{
    int64_t floor_ms = atomic_load_explicit(&times.floor_ms, memory_order_relaxed);

    worker_assert_self(worker);
    if (UNLIKELY(worker->reentrant))
        return MAX(MAX(now_ms, floor_ms), atomic_load_explicit(&worker->run_time_ms, memory_order_relaxed));
    do {
        now_ms = MAX(now_ms, floor_ms);
        atomic_store_explicit(&worker->run_time_ms, now_ms, memory_order_relaxed);
        fence_light();
        floor_ms = atomic_load_explicit(&times.floor_ms, memory_order_relaxed);
    } while (UNLIKELY(floor_ms > now_ms));
    return now_ms;
}

/* What a worker has published before it went in is older than its commands: then the promise is lower than it could
 * be. */
int64_t run_time_promise(struct server *server, int64_t now_ms)
{
    int64_t least_ms = MAX(now_ms, atomic_load_explicit(&times.floor_ms, memory_order_relaxed));

    worker_assert_zero(&server->workers[0]);
    worker_assert_inside(&server->workers[0]);
    atomic_store_explicit(&times.floor_ms, least_ms, memory_order_relaxed);
    fence_heavy();
    for (unsigned i = 1; i < server->worker_count; i++) {
        const struct worker *worker = &server->workers[i];

        if (gate_is_inside(&worker->member))
            least_ms = MIN(least_ms, atomic_load_explicit(&worker->run_time_ms, memory_order_relaxed));
    }
    times.promised_ms = MAX(times.promised_ms, least_ms);
    return times.promised_ms;
}

void run_time_raise(int64_t least_ms)
{
    gate_assert_alone();
    if (least_ms > atomic_load_explicit(&times.floor_ms, memory_order_relaxed))
        atomic_store_explicit(&times.floor_ms, least_ms, memory_order_relaxed);
    times.promised_ms = MAX(times.promised_ms, least_ms);
}
