#include "replication/backlog.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "replication/history.h"
#include "replication/options.h"
#include "server/core/exclusive.h"
#include "server/core/role.h"
#include "server/core/server.h"

#include <stdatomic.h>

static struct {
    _Atomic bool is_on;              /* atomic: relaxed; changed with the gate owned */
    unsigned (*replica_count)(void); /* const after setup; NULL: none */
    void (*forget)(void);            /* likewise */
    _Atomic uint64_t used_us;        /* atomic: relaxed; when a replica was connected last, or the backlog began */
} backlog;

bool backlog_is_on(void)
{
    return atomic_load_explicit(&backlog.is_on, memory_order_relaxed);
}

void backlog_set_users(unsigned (*replica_count)(void), void (*forget)(void))
{
    thread_assert_main();
    backlog.forget = forget;
    backlog.replica_count = replica_count;
}

static void note_use(uint64_t now_us)
{
    atomic_store_explicit(&backlog.used_us, now_us, memory_order_relaxed);
}

void backlog_begin(bool is_adopted)
{
    struct journal *journal = &server_instance()->journal;

    gate_assert_alone();
    if (backlog_is_on())
        return;
    /* While it was off, or on for the file alone, no replica can have followed: nothing before this belongs to it. */
    if (!is_adopted)
        history_begin();
    journal_keep(journal, JOURNAL_KEPT_FOR_REPLICAS, true);
    note_use(clock_monotonic_us());
    atomic_store_explicit(&backlog.is_on, true, memory_order_relaxed);
}

static bool is_unused(uint64_t now_us)
{
    int64_t ttl_s = OPTION_GET(option_repl_backlog_ttl);
    uint64_t used_us;

    if (role_follows() || (backlog.replica_count != NULL && backlog.replica_count() != 0)) {
        note_use(now_us);
        return false;
    }
    used_us = atomic_load_explicit(&backlog.used_us, memory_order_relaxed);
    return ttl_s != 0 && now_us > used_us && now_us - used_us >= (uint64_t)ttl_s * 1000 * 1000;
}

/* Without the gate until it is needed; with it, all is asked again: a replica may have come. */
static void look(struct worker *worker)
{
    const uint64_t now_us = clock_monotonic_us();

    worker_assert_zero(worker);
    if (!backlog_is_on())
        return;
    if (!is_unused(now_us)) {
        exclusive_drop(worker, GATE_WISH_BACKLOG);
        return;
    }
    if (!exclusive_begin(worker, GATE_WISH_BACKLOG))
        return;
    if (is_unused(now_us)) {
        log_notice("Replication backlog freed after %lld seconds without connected replicas.",
                   (long long)OPTION_GET(option_repl_backlog_ttl));
        atomic_store_explicit(&backlog.is_on, false, memory_order_relaxed);
        if (backlog.forget != NULL)
            backlog.forget();
        journal_keep(&worker->server->journal, JOURNAL_KEPT_FOR_REPLICAS, false);
        history_begin();
    }
    exclusive_end(worker);
}

static void on_second(struct worker *worker)
{
    if (worker->index == 0)
        look(worker);
}

static void on_wake(struct worker *worker)
{
    if (UNLIKELY(exclusive_is_wished(worker, GATE_WISH_BACKLOG)))
        look(worker);
}

const struct lifecycle backlog_lifecycle = {.worker_wake = on_wake, .worker_second = on_second};
