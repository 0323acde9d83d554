#include "replication/failover.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/spinlock.h"
#include "replication/history.h"
#include "replication/master.h"
#include "replication/replicas.h"
#include "server/core/exclusive.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/run/pause.h"
#include "store/journal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum state { NONE, WAITING, IN_PROGRESS };
enum answer { NO_ANSWER, ACCEPTED, REFUSED };
enum { HOST_BYTES = 256 };

static struct {
    _Atomic unsigned state;  /* atomic: relaxed; enum state; changed with the gate owned */
    _Atomic unsigned answer; /* atomic: relaxed; enum answer; worker 0's: what the target has said */
    _Atomic bool has_news;   /* atomic: for worker 0 */
    /* Changed with the gate owned, read inside of it: */
    char host[HOST_BYTES]; /* "": any replica */
    int port;
    bool force;
    int64_t end_ms; /* monotonic; 0: no timeout */
    /* The target was asked for its offset behind so many bytes of the history, and the question ends there. */
    int64_t asked_behind, asked_until;
} failover;

static enum state state_now(void)
{
    return (enum state)atomic_load_explicit(&failover.state, memory_order_relaxed);
}

static enum answer answer_now(void)
{
    return (enum answer)atomic_load_explicit(&failover.answer, memory_order_relaxed);
}

bool failover_is_on(void)
{
    return UNLIKELY(state_now() != NONE);
}

const char *failover_state_word(void)
{
    static const char *const words[] =
        {[NONE] = "no-failover", [WAITING] = "waiting-for-sync", [IN_PROGRESS] = "failover-in-progress"};

    return words[state_now()];
}

bool failover_asks_target(void)
{
    worker_assert_zero(worker_self());
    return state_now() == IN_PROGRESS && answer_now() == NO_ANSWER;
}

/* ----------------------------------------------------------------------------------------------------- targets -- */

struct search {
    const char *host; /* "": any that has everything */
    int port;
    int64_t end; /* the history's */
    bool is_found, is_online, has_all;
    char found_host[HOST_BYTES];
    int found_port;
};

/* Its word about the offset is older than its answer: the question itself it has read, too. */
static bool has_all(int64_t acked, int64_t end)
{
    return acked >= end || (end == failover.asked_until && acked >= failover.asked_behind);
}

static void look_at_replica(const struct replica_facts *facts, void *context)
{
    struct search *search = context;
    const bool is_online = facts->state == REPLICA_ONLINE;
    const bool is_synced = is_online && has_all(facts->acked_offset, search->end);

    if (search->host[0] != '\0' ? strcmp(facts->ip, search->host) != 0 || facts->port != search->port
                                : !is_synced || search->is_found || facts->port == 0)
        return;
    search->is_found = true;
    search->is_online = is_online;
    search->has_all = is_synced;
    (void)snprintf(search->found_host, sizeof(search->found_host), "%s", facts->ip);
    search->found_port = facts->port;
}

static struct search find_target(const char *host, int port)
{
    struct search search = {.host = host, .port = port, .end = history_offset()};

    replicas_each(look_at_replica, &search);
    return search;
}

/* ------------------------------------------------------------------------------------------------------- states -- */

static void clear(void)
{
    gate_assert_alone();
    atomic_store_explicit(&failover.state, NONE, memory_order_relaxed);
    atomic_store_explicit(&failover.answer, NO_ANSWER, memory_order_relaxed);
    pause_for(PAUSE_FOR_FAILOVER, false);
    pause_for_over();
}

static void give_up(const char *reason)
{
    const enum state before = state_now();

    gate_assert_alone();
    log_notice("Aborting failover to %s:%d while state: %s. %s", failover.host[0] != '\0' ? failover.host : "?",
               failover.port, failover_state_word(), reason);
    if (before == IN_PROGRESS)
        (void)master_leave();
    clear();
}

static void take_over(const struct search *target)
{
    gate_assert_alone();
    log_notice("Failover target is synced, failing over to %s:%d", target->found_host, target->found_port);
    (void)snprintf(failover.host, sizeof(failover.host), "%s", target->found_host);
    failover.port = target->found_port;
    atomic_store_explicit(&failover.state, IN_PROGRESS, memory_order_relaxed);
    (void)master_follow(failover.host, failover.port);
}

static void ask(struct worker *worker)
{
    static const char getack[] = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";

    failover.asked_behind = history_offset();
    journal_append_message(&worker->server->journal, slice_make(getack, sizeof(getack) - 1));
    failover.asked_until = history_offset();
    worker->has_journaled = true;
    worker_at_turn_end(worker);
}

const char *failover_begin(struct worker *worker, const struct failover_wish *wish)
{
    char host[HOST_BYTES];
    struct search target;

    gate_assert_alone();
    worker_assert_self(worker);
    if (failover_is_on())
        return "ERR FAILOVER already in progress.";
    if (role_follows())
        return "ERR FAILOVER is not valid when server is a replica.";
    if (replicas_count() == 0)
        return "ERR FAILOVER requires connected replicas.";
    if (wish->force && (!wish->has_timeout || wish->host.size == 0))
        return "ERR FAILOVER with force option requires both a timeout and target HOST and IP.";
    host[0] = '\0';
    if (wish->host.size != 0) {
        (void)snprintf(host, sizeof(host), "%.*s", (int)MIN(wish->host.size, sizeof(host) - 1), wish->host.data);
        target = find_target(host, wish->port);
        if (!target.is_found)
            return "ERR FAILOVER target HOST and PORT is not a replica.";
        if (!target.is_online)
            return "ERR FAILOVER target replica is not online.";
    }
    (void)snprintf(failover.host, sizeof(failover.host), "%s", host);
    failover.port = wish->port;
    failover.force = wish->force;
    failover.end_ms = wish->has_timeout ? (int64_t)clock_monotonic_ms() + wish->timeout_ms : 0;
    pause_for(PAUSE_FOR_FAILOVER, true);
    ask(worker);
    atomic_store_explicit(&failover.state, WAITING, memory_order_release);
    log_notice("FAILOVER requested to %s:%d.", host[0] != '\0' ? host : "any host", wish->port);
    return NULL;
}

bool failover_abort(void)
{
    gate_assert_alone();
    if (!failover_is_on())
        return false;
    give_up("Failover manually aborted");
    return true;
}

/* ------------------------------------------------------------------------------------------------------ worker 0 -- */

void failover_look_again(void)
{
    if (LIKELY(!failover_is_on()))
        return;
    if (!atomic_exchange(&failover.has_news, true))
        worker_wake(&server_instance()->workers[0]);
}

static bool is_late(void)
{
    return failover.end_ms != 0 && (int64_t)clock_monotonic_ms() >= failover.end_ms;
}

/* With the gate owned: nothing changes between the look and the step. */
static void step(void)
{
    struct search target;

    if (state_now() == IN_PROGRESS) {
        if (answer_now() == ACCEPTED)
            clear();
        else if (answer_now() == REFUSED)
            give_up("Failover target rejected psync request");
        return;
    }
    if (state_now() != WAITING)
        return;
    target = find_target(failover.host, failover.port);
    if (target.is_found && target.has_all) {
        take_over(&target);
    } else if (is_late() && !failover.force) {
        give_up("Replica never caught up before timeout");
    } else if (is_late()) {
        log_notice("Failover to %s:%d time out exceeded, failing over.", failover.host, failover.port);
        (void)snprintf(target.found_host, sizeof(target.found_host), "%s", failover.host);
        target.found_port = failover.port;
        take_over(&target);
    }
}

static bool step_is_due(void)
{
    struct search target;

    if (state_now() == IN_PROGRESS)
        return answer_now() != NO_ANSWER;
    target = find_target(failover.host, failover.port);
    return is_late() || (target.is_found && target.has_all);
}

/* Inside of the gate, since others may begin and abort a failover. Where that is closed the next sample looks. */
static bool step_is_due_now(struct worker *worker)
{
    bool is_due;

    if (!failover_is_on() || !gate_enter(&worker->member))
        return false;
    is_due = failover_is_on() && step_is_due();
    gate_leave(&worker->member);
    return is_due;
}

static void look(struct worker *worker)
{
    worker_assert_zero(worker);
    atomic_store(&failover.has_news, false);
    if (worker->reentrant)
        return;
    if (!exclusive_is_wished(worker, GATE_WISH_FAILOVER) && !step_is_due_now(worker))
        return;
    if (!exclusive_begin(worker, GATE_WISH_FAILOVER))
        return; /* it is woken */
    step();
    exclusive_end(worker);
    if (worker->has_deferred)
        worker_run_deferred(worker);
}

void failover_was_answered(bool has_accepted)
{
    struct server *server = server_instance();

    worker_assert_zero(&server->workers[0]);
    if (state_now() != IN_PROGRESS)
        return;
    atomic_store_explicit(&failover.answer, has_accepted ? ACCEPTED : REFUSED, memory_order_relaxed);
    failover_look_again();
}

static void on_wake(struct worker *worker)
{
    if (worker->index == 0 && (UNLIKELY(atomic_load_explicit(&failover.has_news, memory_order_relaxed)) ||
                               UNLIKELY(exclusive_is_wished(worker, GATE_WISH_FAILOVER))))
        look(worker);
}

static void sample(struct server *server)
{
    if (UNLIKELY(failover_is_on()))
        look(&server->workers[0]);
}

const struct lifecycle failover_lifecycle = {.worker_wake = on_wake, .server_sample = sample};
