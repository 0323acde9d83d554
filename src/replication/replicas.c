#include "replication/replicas.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "replication/backlog.h"
#include "replication/failover.h"
#include "replication/full_sync.h"
#include "replication/history.h"
#include "replication/options.h"
#include "replication/replica_priv.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/memory/memory_limit.h"

#include <stdatomic.h>
#include <string.h>

enum { SECOND_US = 1000 * 1000, PLACES_MOST = 128 };

struct spinlock replicas_lock = {.rank = LOCK_REGISTRY}; /* global: see replica_priv.h */
struct list replicas_list;                               /* global: likewise */

static struct {
    struct list places;   /* guarded by replicas_lock; of struct place: of those that have gone, oldest first */
    unsigned place_count; /* guarded by replicas_lock; in the list */
    _Atomic unsigned count, good_count;                    /* atomic: relaxed */
    _Atomic uint64_t generation;                           /* atomic: changed with the gate owned and under the lock */
    _Atomic uint64_t held_bytes;                           /* atomic: relaxed; of all links */
    _Atomic uint64_t full, partial, refused, output_bytes; /* atomic: relaxed */
    void (*news)(void);                                    /* const after setup */
    uint64_t pinged_us;                                    /* worker 0's */
} all;

static struct {
    bool asks; /* its own: replicas are to be asked for their offsets */
} CACHE_ALIGNED states[WORKERS_MOST + 1];

/* ----------------------------------------------------------------------------------------------------- the list -- */

bool replicas_is_current(const struct replica *link)
{
    return link->generation == atomic_load_explicit(&all.generation, memory_order_acquire);
}

void replicas_add(struct replica *link)
{
    worker_assert_self(link->worker);
    spinlock_acquire(&replicas_lock);
    link->generation = atomic_load_explicit(&all.generation, memory_order_relaxed);
    list_push_back(&replicas_list, &link->node);
    spinlock_release(&replicas_lock);
    atomic_fetch_add_explicit(&all.count, 1, memory_order_relaxed);
}

void replicas_remove(struct replica *link)
{
    worker_assert_self(link->worker);
    if (!list_node_is_linked(&link->node))
        return;
    spinlock_acquire(&replicas_lock);
    list_remove(&link->node);
    spinlock_release(&replicas_lock);
    atomic_fetch_sub_explicit(&all.count, 1, memory_order_relaxed);
}

unsigned replicas_count(void)
{
    return atomic_load_explicit(&all.count, memory_order_relaxed);
}

unsigned replicas_good_count(void)
{
    return atomic_load_explicit(&all.good_count, memory_order_relaxed);
}

static const char *shown_ip(const struct replica *link)
{
    return link->said_ip != NULL ? link->said_ip : link->peer_ip;
}

static void fill_facts(struct replica_facts *facts, const struct replica *link, uint64_t now_us)
{
    spinlock_assert_held(&replicas_lock);
    *facts = (struct replica_facts){
        .client_id = link->client_id,
        .ip = shown_ip(link),
        .port = link->port,
        .state = (enum replica_state)atomic_load_explicit(&link->state, memory_order_relaxed),
        .is_keydb = link->is_keydb,
        .acked_offset = atomic_load_explicit(&link->acked, memory_order_relaxed),
        .synced_offset = atomic_load_explicit(&link->synced, memory_order_relaxed),
        .held_bytes = atomic_load_explicit(&link->held_bytes, memory_order_relaxed),
    };
    if (facts->state == REPLICA_ONLINE)
        facts->lag_s = (int64_t)((now_us - MIN(now_us, atomic_load_explicit(&link->heard_us, memory_order_relaxed))) /
                                 SECOND_US);
}

void replicas_each(void (*visit)(const struct replica_facts *facts, void *context), void *context)
{
    const uint64_t now_us = clock_monotonic_us();

    spinlock_acquire(&replicas_lock);
    LIST_FOREACH(node, &replicas_list) {
        struct replica_facts facts;

        fill_facts(&facts, container_of(node, struct replica, node), now_us);
        visit(&facts, context);
    }
    spinlock_release(&replicas_lock);
}

static bool is_good(const struct replica *link, uint64_t now_us)
{
    const uint64_t most_us = (uint64_t)OPTION_GET(option_min_replicas_max_lag) * SECOND_US;

    return atomic_load_explicit(&link->state, memory_order_relaxed) == REPLICA_ONLINE &&
           now_us - MIN(now_us, atomic_load_explicit(&link->heard_us, memory_order_relaxed)) <= most_us;
}

void replicas_refresh_good(void)
{
    const uint64_t now_us = clock_monotonic_us();
    unsigned count = 0;

    spinlock_acquire(&replicas_lock);
    LIST_FOREACH(node, &replicas_list)
        count += is_good(container_of(node, struct replica, node), now_us);
    atomic_store_explicit(&all.good_count, count, memory_order_relaxed);
    spinlock_release(&replicas_lock);
}

unsigned replicas_have(int64_t offset, enum replicas_proof proof)
{
    unsigned count = 0;

    spinlock_acquire(&replicas_lock);
    LIST_FOREACH(node, &replicas_list) {
        const struct replica *link = container_of(node, struct replica, node);
        const _Atomic int64_t *has = proof == REPLICAS_APPLIED ? &link->acked : &link->synced;

        count += atomic_load_explicit(&link->state, memory_order_relaxed) == REPLICA_ONLINE &&
                 atomic_load_explicit(has, memory_order_relaxed) >= offset;
    }
    spinlock_release(&replicas_lock);
    return count;
}

void replicas_on_news(void (*news)(void))
{
    thread_assert_main();
    all.news = news;
}

void replicas_tell_news(void)
{
    replicas_refresh_good();
    if (all.news != NULL)
        all.news();
}

/* ------------------------------------------------------------------------------------------------------- places -- */

void replicas_close_place(struct replica_place **place)
{
    if (*place == NULL)
        return;
    journal_reader_close(&(*place)->reader);
    mem_free(*place);
    *place = NULL;
}

static void remove_place_locked(struct list_node *node)
{
    spinlock_assert_held(&replicas_lock);
    list_remove(node);
    all.place_count--;
}

/* What says that it is ever another replica must not leave ever more. */
static struct replica_place *take_oldest_locked(void)
{
    struct list_node *node = list_first(&all.places);

    spinlock_assert_held(&replicas_lock);
    remove_place_locked(node);
    return container_of(node, struct replica_place, place.node);
}

void replicas_leave_place(struct replica_place **place)
{
    struct replica_place *oldest = NULL;

    if (*place == NULL)
        return;
    (*place)->left_us = clock_monotonic_us();
    (*place)->place.acked = journal_reader_offset(&(*place)->reader);
    spinlock_acquire(&replicas_lock);
    list_push_back(&all.places, &(*place)->place.node);
    if (++all.place_count > PLACES_MOST)
        oldest = take_oldest_locked();
    spinlock_release(&replicas_lock);
    *place = NULL;
    replicas_close_place(&oldest);
}

static bool is_address_shared_locked(const struct replica *link)
{
    spinlock_assert_held(&replicas_lock);
    LIST_FOREACH(node, &replicas_list) {
        const struct replica *other = container_of(node, struct replica, node);

        if (other != link && other->port == link->port && strcmp(shown_ip(other), shown_ip(link)) == 0)
            return true;
    }
    return false;
}

struct replica_place *replicas_take_place(const struct replica *link, uint64_t offset)
{
    struct place_wish wish = {.ip = shown_ip(link), .port = link->port, .offset = offset};
    struct place *found;

    worker_assert_self(link->worker);
    static_assert((int)PLACE_IP_MOST == (int)REPLICA_IP_MOST, "addresses are of one size");
    spinlock_acquire(&replicas_lock);
    wish.is_shared = is_address_shared_locked(link);
    found = places_choose(&all.places, &wish);
    if (found != NULL)
        remove_place_locked(&found->node);
    spinlock_release(&replicas_lock);
    return found != NULL ? container_of(found, struct replica_place, place) : NULL;
}

void replicas_each_place(void (*visit)(const struct replica_place_facts *facts, void *context), void *context)
{
    const uint64_t now_us = clock_monotonic_us(), end = journal_end_offset(&server_instance()->journal);

    spinlock_acquire(&replicas_lock);
    LIST_FOREACH(node, &all.places) {
        const struct replica_place *place = container_of(node, struct replica_place, place.node);
        const uint64_t offset = journal_reader_offset(&place->reader);
        const struct replica_place_facts facts = {.ip = place->place.ip,
                                                  .port = place->place.port,
                                                  .offset = history_of_journal(offset),
                                                  .kept_bytes = end - MIN(end, offset),
                                                  .gone_s = (int64_t)((now_us - MIN(now_us, place->left_us)) /
                                                                      SECOND_US)};

        visit(&facts, context);
    }
    spinlock_release(&replicas_lock);
}

/* Closes all places that were left before that. */
static void close_places(uint64_t before_us)
{
    struct list gone;

    list_init(&gone);
    spinlock_acquire(&replicas_lock);
    LIST_FOREACH_SAFE(node, &all.places) {
        if (container_of(node, struct replica_place, place.node)->left_us < before_us) {
            remove_place_locked(node);
            list_push_back(&gone, node);
        }
    }
    spinlock_release(&replicas_lock);
    for (struct list_node *node; (node = list_pop_front(&gone)) != NULL;) {
        struct replica_place *place = container_of(node, struct replica_place, place.node);

        replicas_close_place(&place);
    }
}

static void forget_places(void)
{
    close_places(UINT64_MAX);
}

static void close_old_places(uint64_t now_us)
{
    const int64_t ttl_s = OPTION_GET(option_repl_backlog_ttl);

    if (ttl_s != 0 && (uint64_t)ttl_s * SECOND_US < now_us)
        close_places(now_us - (uint64_t)ttl_s * SECOND_US);
}

void replicas_disconnect(bool forget)
{
    struct server *server = server_instance();

    gate_assert_alone();
    spinlock_acquire(&replicas_lock);
    atomic_fetch_add_explicit(&all.generation, 1, memory_order_release);
    spinlock_release(&replicas_lock);
    if (forget)
        forget_places();
    if (replicas_count() == 0)
        return;
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_wake(&server->workers[i]); /* they close their links */
}

/* ------------------------------------------------------------------------------------------------------ figures -- */

void replicas_count_sync(enum replicas_event event)
{
    atomic_fetch_add_explicit(event == REPLICAS_FULL_SYNC      ? &all.full
                              : event == REPLICAS_PARTIAL_SYNC ? &all.partial
                                                               : &all.refused,
                              1, memory_order_relaxed);
}

void replicas_note_refused(void)
{
    replicas_count_sync(REPLICAS_REFUSED_SYNC);
}

void replicas_count_output(uint64_t bytes)
{
    atomic_fetch_add_explicit(&all.output_bytes, bytes, memory_order_relaxed);
}

void replicas_note_held(struct replica *link, uint64_t bytes)
{
    uint64_t before = atomic_exchange_explicit(&link->held_bytes, bytes, memory_order_relaxed);

    worker_assert_self(link->worker);
    atomic_fetch_add_explicit(&all.held_bytes, bytes - before, memory_order_relaxed);
}

static uint64_t held_bytes(void)
{
    return atomic_load_explicit(&all.held_bytes, memory_order_relaxed) + full_sync_held_bytes();
}

void replicas_stats(struct replicas_stats *stats)
{
    *stats = (struct replicas_stats){
        .full_syncs = atomic_load_explicit(&all.full, memory_order_relaxed),
        .partial_syncs = atomic_load_explicit(&all.partial, memory_order_relaxed),
        .refused_partial_syncs = atomic_load_explicit(&all.refused, memory_order_relaxed),
        .output_bytes = atomic_load_explicit(&all.output_bytes, memory_order_relaxed),
        .held_bytes = held_bytes(),
    };
}

void replicas_reset_stats(void)
{
    gate_assert_alone();
    atomic_store_explicit(&all.full, 0, memory_order_relaxed);
    atomic_store_explicit(&all.partial, 0, memory_order_relaxed);
    atomic_store_explicit(&all.refused, 0, memory_order_relaxed);
    atomic_store_explicit(&all.output_bytes, 0, memory_order_relaxed);
}

/* ----------------------------------------------------------------------------------- messages to all replicas -- */

/* False: the gate is closed; this worker is woken when it opens. */
static bool send_message(struct worker *worker, struct slice bytes)
{
    if (!gate_enter(&worker->member))
        return false;
    if (!role_follows() && backlog_is_on()) {
        journal_append_message(&worker->server->journal, bytes);
        worker->has_journaled = true;
        worker_at_turn_end(worker);
    }
    gate_leave(&worker->member);
    return true;
}

void replicas_ask_offsets(struct worker *worker)
{
    worker_assert_self(worker);
    states[worker->index].asks = true;
    worker_at_turn_end(worker);
}

static void ask(struct worker *worker)
{
    static const char getack[] = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";

    if (LIKELY(!states[worker->index].asks) || worker->reentrant || failover_is_on())
        return;
    if (replicas_count() == 0 || send_message(worker, slice_make(getack, sizeof(getack) - 1)))
        states[worker->index].asks = false;
}

static void ping(struct worker *worker, uint64_t now_us)
{
    static const char text[] = "*1\r\n$4\r\nPING\r\n";
    const uint64_t period_us = (uint64_t)OPTION_GET(option_repl_ping_period) * SECOND_US;

    if (replicas_count() == 0)
        all.pinged_us = now_us; /* the first one comes a period after the first replica */
    /* What a failover's target has to have must not grow. */
    if (failover_is_on() || now_us - all.pinged_us < period_us)
        return;
    if (send_message(worker, slice_make(text, sizeof(text) - 1)))
        all.pinged_us = now_us;
}

/* -------------------------------------------------------------------------------------------------------- hooks -- */

static void on_second(struct worker *worker)
{
    const uint64_t now_us = clock_monotonic_us();

    if (worker->index != 0)
        return;
    close_old_places(now_us);
    ping(worker, now_us);
    if (replicas_count() != 0)
        replicas_refresh_good();
}

/* All workers' threads have ended, and with them their links. */
static void on_fini(struct worker *worker)
{
    if (worker->index == 0)
        forget_places();
}

void replicas_setup(void)
{
    thread_assert_main();
    list_init(&replicas_list);
    list_init(&all.places);
    all.pinged_us = clock_monotonic_us();
    full_sync_setup();
    backlog_set_users(replicas_count, forget_places);
    memory_limit_of_replicas(held_bytes);
}

const struct lifecycle replicas_lifecycle = {
    .worker_wake = ask,
    .worker_turn_end = ask,
    .worker_second = on_second,
    .worker_fini = on_fini,
};
