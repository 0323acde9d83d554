#include "server/run/pause.h"

#include "base/assert.h"
#include "base/clock.h"
#include "server/config/command_block.h"
#include "server/core/client.h"
#include "server/core/deliveries.h"
#include "server/core/lifecycle.h"
#include "server/core/server.h"
#include "server/core/transaction.h"

_Atomic uint32_t pause_mode; /* global: see pause.h */

static _Atomic int64_t pause_until_ms; /* atomic: monotonic clock */

/* Of a worker; its own thread's: the end of the pause that began there. */
static struct {
    struct loop_timer timer;
} CACHE_ALIGNED timers[WORKERS_MOST];

static int64_t now_ms(void)
{
    return (int64_t)clock_monotonic_ms();
}

/* Of CLIENT PAUSE. */
static uint32_t mode_of_clients(void)
{
    return atomic_load(&pause_mode) & ~(uint32_t)PAUSE_REASONS;
}

static void keep_expired(struct server *server, bool keep)
{
    store_keep_expired(server->store, STORE_KEEPS_PAUSED, keep);
}

/* A worker does it after releasing its stripes: UNPAUSE may be in a transaction. */
static void wake_all(struct server *server)
{
    struct worker *self = worker_self();

    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker *worker = &server->workers[i];

        worker_note_parked(worker, PARKING_PAUSE);
        if (self != NULL)
            deliveries_call_later(self, worker);
        else
            worker_wake(worker);
    }
}

static void on_timer(struct loop *loop, struct loop_timer *timer)
{
    const struct worker *worker = loop_user(loop);
    int64_t left_ms = atomic_load(&pause_until_ms) - now_ms();

    if (mode_of_clients() == PAUSE_NONE)
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

    worker_assert_self(worker);
    assert((mode == PAUSE_WRITES || mode == PAUSE_ALL) && duration_ms >= 0);
    if (mode_of_clients() != PAUSE_NONE && now >= atomic_load(&pause_until_ms))
        pause_end(worker->server);
    before = atomic_load(&pause_until_ms);
    mode_before = atomic_load(&pause_mode);
    while (before < until && !atomic_compare_exchange_weak(&pause_until_ms, &before, until))
        ;
    while ((mode_before & ~(uint32_t)PAUSE_REASONS) < (uint32_t)mode &&
           !atomic_compare_exchange_weak(&pause_mode, &mode_before, (mode_before & PAUSE_REASONS) | (uint32_t)mode))
        ;
    keep_expired(worker->server, true);
    on_timer(worker->loop, &timers[worker->index].timer);
}

void pause_end(struct server *server)
{
    uint32_t before = atomic_fetch_and(&pause_mode, PAUSE_REASONS);

    atomic_store(&pause_until_ms, 0);
    if ((before & PAUSE_REASONS) == 0)
        keep_expired(server, false);
    wake_all(server);
}

void pause_for(enum pause_mode reason, bool is_on)
{
    struct server *server = server_instance();

    assert((reason & ~PAUSE_REASONS) == 0 && (reason & (reason - 1)) == 0);
    if (is_on) {
        atomic_fetch_or(&pause_mode, (uint32_t)reason);
        keep_expired(server, true);
        command_block_note_change(); /* commands that were asked before are asked again */
        return;
    }
    if (atomic_fetch_and(&pause_mode, ~(uint32_t)reason) == (uint32_t)reason)
        keep_expired(server, false);
}

void pause_for_lag(bool lags)
{
    pause_for(PAUSE_FOR_LAG, lags);
}

void pause_for_snapshot(bool is_crowded)
{
    pause_for(PAUSE_FOR_SNAPSHOT, is_crowded);
}

void pause_for_over(void)
{
    wake_all(server_instance());
}

static bool may_write(const struct client *client, const struct command *command, const struct slice *args,
                      uint32_t arg_count)
{
    if (command->row->access == ACCESS_TRANSACTION)
        return client->transaction != NULL && transaction_may_write(client->transaction);
    return command_may_write(command, args, arg_count);
}

bool pause_holds_writes(void)
{
    if ((atomic_load(&pause_mode) & PAUSE_REASONS & ~(uint32_t)PAUSE_FOR_LAG) != 0)
        return true;
    return mode_of_clients() != PAUSE_NONE && now_ms() < atomic_load(&pause_until_ms);
}

bool pause_holds(const struct client *client, const struct command *command, const struct slice *args,
                 uint32_t arg_count)
{
    const uint32_t mode = mode_of_clients();

    client_assert_owned(client);
    if ((atomic_load(&pause_mode) & PAUSE_REASONS) != 0 && may_write(client, command, args, arg_count))
        return true;
    if (mode == PAUSE_NONE || now_ms() >= atomic_load(&pause_until_ms))
        return false;
    /* What a replica has, it says all the time: else WAIT would not end, and its link would be taken for dead. */
    return (mode == PAUSE_ALL && (client->flags & CLIENT_REPLICA) == 0) || may_write(client, command, args, arg_count);
}

static void init(struct worker *worker)
{
    if (worker->index < WORKERS_MOST)
        timers[worker->index].timer = (struct loop_timer){0};
}

static bool start(struct server *server)
{
    server->store->on_crowd = pause_for_snapshot;
    server->store->on_room = pause_for_over;
    return true;
}

const struct lifecycle pause_lifecycle = {
    .server_start = start,
    .worker_init = init,
};

/* --------------------------------------------------------------------------------------------------------- INFO -- */

struct picture {
    const char *reason, *actions;
    uint64_t left_ms;
};

static const char *reason_word(uint32_t mode)
{
    static const struct {
        uint32_t reason;
        const char *word;
    } words[] = {
        {PAUSE_FOR_SHUTDOWN, "shutdown_in_progress"},
        {PAUSE_FOR_FAILOVER, "failover_in_progress"},
        {PAUSE_ALL | PAUSE_WRITES, "client_pause"},
        {PAUSE_FOR_LAG, "replica_lag"},
        {PAUSE_FOR_FILE, "journal_file"},
        {PAUSE_FOR_BOUNDS, "node_identity"},
        {PAUSE_FOR_SNAPSHOT, "snapshot_memory"},
    };

    for (size_t i = 0; i < countof(words); i++) {
        if ((mode & words[i].reason) != 0)
            return words[i].word;
    }
    return "none";
}

/* A pause that is over stays in pause_mode until a worker's timer looks. */
static void take(void *picture, const struct info_moment *moment)
{
    struct picture *facts = picture;
    const int64_t left_ms = atomic_load(&pause_until_ms) - (int64_t)(moment->monotonic_us / 1000);
    uint32_t mode = atomic_load(&pause_mode);

    if (left_ms <= 0)
        mode &= (uint32_t)PAUSE_REASONS;
    *facts = (struct picture){
        .reason = reason_word(mode),
        .actions = mode == PAUSE_NONE                               ? "none"
                   : (mode & ~(uint32_t)PAUSE_REASONS) == PAUSE_ALL ? "all"
                                                                    : "write",
        .left_ms = left_ms > 0 ? (uint64_t)left_ms : 0,
    };
}

static const struct info_source source = {sizeof(struct picture), .take = take};

const struct info_row pause_info[] = {
    INFO_FIELD("paused_reason", &source, struct picture, reason),
    INFO_FIELD("paused_actions", &source, struct picture, actions),
    INFO_FIELD("paused_timeout_milliseconds", &source, struct picture, left_ms),
    {0},
};
