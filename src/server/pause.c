#include "server/pause.h"

#include "base/clock.h"
#include "server/client.h"
#include "server/server.h"
#include "server/transaction.h"

_Atomic uint32_t pause_mode; /* global: see pause.h */

static _Atomic int64_t pause_until_ms; /* atomic: monotonic clock */

static int64_t now_ms(void)
{
    return (int64_t)clock_monotonic_ms();
}

static void on_timer(struct loop *loop, struct loop_timer *timer)
{
    const struct worker *worker = loop_user(loop);
    int64_t left_ms = atomic_load(&pause_until_ms) - now_ms();

    if (!pause_is_on())
        return;
    if (left_ms > 0)
        loop_timer_start(loop, timer, MIN(left_ms, (int64_t)86400000) * 1000, on_timer);
    else
        pause_end(worker->server);
}

void pause_begin(struct worker *worker, enum pause_mode mode, int64_t duration_ms)
{
    int64_t now = now_ms(), until = duration_ms > INT64_MAX - now ? INT64_MAX : now + duration_ms;
    int64_t before;
    uint32_t mode_before;

    if (pause_is_on() && now >= atomic_load(&pause_until_ms))
        pause_end(worker->server);
    before = atomic_load(&pause_until_ms);
    mode_before = atomic_load(&pause_mode);
    while (before < until && !atomic_compare_exchange_weak(&pause_until_ms, &before, until))
        ;
    while (mode_before < (uint32_t)mode && !atomic_compare_exchange_weak(&pause_mode, &mode_before, (uint32_t)mode))
        ;
    atomic_store_explicit(&worker->server->store->keeps_expired, true, memory_order_relaxed);
    on_timer(worker->loop, &worker->pause_timer);
}

void pause_end(struct server *server)
{
    atomic_store(&pause_mode, PAUSE_NONE);
    atomic_store(&pause_until_ms, 0);
    atomic_store_explicit(&server->store->keeps_expired, false, memory_order_relaxed);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_wake(&server->workers[i]);
}

static bool may_write(const struct client *client, const struct command *command)
{
    const uint32_t writing = COMMAND_WRITE | COMMAND_MAY_REPLICATE;

    if (command->row->access == ACCESS_TRANSACTION)
        return client->transaction != NULL && (transaction_flags(client->transaction) & writing) != 0;
    return (command->flags & writing) != 0;
}

bool pause_holds(const struct client *client, const struct command *command)
{
    const uint32_t mode = atomic_load(&pause_mode);

    if (mode == PAUSE_NONE || now_ms() >= atomic_load(&pause_until_ms))
        return false;
    return mode == PAUSE_ALL || may_write(client, command);
}
