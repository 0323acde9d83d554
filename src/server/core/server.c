#include "server/core/server.h"

#include "base/background.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/tick.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/config/options_process.h"
#include "server/core/client.h"
#include "server/core/deliveries.h"
#include "server/core/lifecycle.h"
#include "server/core/stats.h"
#include "server/process/descriptors.h"
#include "store/access.h"

#include <stdio.h>
#include <string.h>

enum { CLIENTS_A_TURN = 200 };

static struct server *instance; /* const while workers run */

struct server *server_instance(void)
{
    return instance;
}

/* -------------------------------------------------------------------------------------- what CONFIG SET changes -- */

/* With an LRM policy: the stripe is held. */
static void note_change(struct store_observer *observer, const struct change *change)
{
    struct entry *entry = change_entry(change);

    (void)observer;
    if (entry != NULL)
        entry->clock = change->access->clock & 0xFFFFFF;
}

static struct store_observer changes = {.after = note_change}; /* global: const after start */

static const char *apply_lru_lfu(const struct option_row *row)
{
    struct store *store = instance->store;
    const bool counts_changes = (OPTION_GET(option_maxmemory_policy) & POLICY_MODIFIED) != 0;

    (void)row;
    store_set_observed(store, OBSERVE_CLOCKS, counts_changes ? OBSERVE_CLOCKS : 0);
    atomic_store_explicit(&store->counts_changes, counts_changes, memory_order_relaxed);
    atomic_store_explicit(&store->counts_uses, (OPTION_GET(option_maxmemory_policy) & POLICY_LFU) != 0,
                          memory_order_relaxed);
    atomic_store_explicit(&store->lfu_log_factor, (uint32_t)OPTION_GET(option_lfu_log_factor), memory_order_relaxed);
    atomic_store_explicit(&store->lfu_decay_minutes, (uint32_t)OPTION_GET(option_lfu_decay_time), memory_order_relaxed);
    return NULL;
}

static const char *apply_lazy_free(const struct option_row *row)
{
    uint32_t later = FREE_UNLINK;

    (void)row;
    later |= OPTION_IS(option_lazyfree_lazy_server_del) ? FREE_SERVER_DEL : 0;
    later |= OPTION_IS(option_lazyfree_lazy_user_del) ? FREE_USER_DEL : 0;
    later |= OPTION_IS(option_lazyfree_lazy_expire) ? FREE_EXPIRE : 0;
    atomic_store_explicit(&instance->store->frees_later, later, memory_order_relaxed);
    return NULL;
}

static void limits_read(struct worker *worker)
{
    uint64_t most = OPTION_GET_U64(option_proto_max_bulk_len);

    worker->limits = (struct resp_limits){.bulk_max_bytes = most, .authenticated = true, .large = true};
    worker->limits_unauthenticated = (struct resp_limits){.bulk_max_bytes = most};
}

static void limits_deliver(struct worker *worker, struct mail *mail)
{
    limits_read(worker);
    mem_free(mail);
}

static const char *apply_limits(const struct option_row *row)
{
    (void)row;
    for (unsigned i = 0; i < instance->worker_count; i++) {
        struct mail *mail = mem_alloc(sizeof(*mail));

        *mail = (struct mail){.deliver = limits_deliver};
        worker_post(&instance->workers[i], &mail);
    }
    return NULL;
}

static const char *apply_maxclients(const struct option_row *row)
{
    static char error[128]; /* guarded by the gate */
    int64_t clients = OPTION_GET(option_maxclients);

    (void)row;
    if (descriptors_make_room(&clients, instance->worker_count))
        return NULL;
    snprintf(error, sizeof(error),
             "The operating system is not able to handle the specified number of clients, try "
             "with %lld",
             (long long)clients);
    return error;
}

static void watch_options(void)
{
    config_on_change("maxclients", apply_maxclients);
    config_on_change("maxmemory-policy", apply_lru_lfu);
    config_on_change("lfu-log-factor", apply_lru_lfu);
    config_on_change("lfu-decay-time", apply_lru_lfu);
    config_on_change("lazyfree-lazy-server-del", apply_lazy_free);
    config_on_change("lazyfree-lazy-user-del", apply_lazy_free);
    config_on_change("lazyfree-lazy-expire", apply_lazy_free);
    config_on_change("proto-max-bulk-len", apply_limits);
}

/* ------------------------------------------------------------------------------------------------ start and end -- */

static void wake_waiters(uint64_t wait_mask)
{
    for (; wait_mask != 0; wait_mask &= wait_mask - 1)
        worker_wake_parked(&instance->workers[__builtin_ctzll(wait_mask)], PARKING_STRIPE);
}

static unsigned thread_count_wanted(void)
{
    int64_t wanted = OPTION_GET(option_server_threads);

    return wanted > 0 ? (unsigned)MIN(wanted, (int64_t)WORKERS_MOST) : MIN(thread_cpu_count(), 8U);
}

/* False: there are too few to serve a single client. */
static bool descriptors_suffice(unsigned worker_count)
{
    int64_t clients = OPTION_GET(option_maxclients);

    if (!descriptors_make_room(&clients, worker_count))
        atomic_store_explicit(&option_maxclients, clients, memory_order_relaxed);
    return clients > 0;
}

static bool open_loops(struct server *server)
{
    for (unsigned i = 0; i < server->worker_count; i++) {
        if (!worker_open_loop(&server->workers[i])) {
            log_warning("Can't create the event loop of thread %u", i);
            return false;
        }
        limits_read(&server->workers[i]);
    }
    return true;
}

struct server *server_create(void)
{
    struct server *server = mem_aligned_alloc(CACHE_LINE_BYTES, sizeof(*server));

    thread_assert_main();
    memset(server, 0, sizeof(*server));
    instance = server;
    gate_init(&server->gate);
    script_turn_init(&server->script_turn);
    journal_init(&server->journal);
    server->store = store_create(STORE_STRIPES_DEFAULT, (unsigned)OPTION_GET(option_databases));
    server->store->wake = wake_waiters;
    server->started_us = (int64_t)clock_monotonic_us();
    server->worker_count = thread_count_wanted();
    server->workers = mem_aligned_alloc(CACHE_LINE_BYTES, server->worker_count * sizeof(struct worker));
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_init(&server->workers[i], server, i);
    watch_options();
    store_observe(instance->store, &changes);
    (void)apply_lru_lfu(NULL);
    (void)apply_lazy_free(NULL);
    if (!descriptors_suffice(server->worker_count) || !open_loops(server) || !lifecycle_server_start(server))
        server_destroy(&server);
    return server;
}

/* The loops of the workers are destroyed, or are about to be: signal handlers must not use them. Atomic, relaxed: the
 * main thread sets it, and all other threads block signals (base/thread.c), so the handlers run in the main thread. */
static _Atomic bool loops_are_gone;

void server_destroy(struct server **server)
{
    struct server *gone = *server;

    thread_assert_main();
    if (gone == NULL)
        return;
    atomic_store_explicit(&loops_are_gone, true, memory_order_relaxed);
    for (unsigned i = 0; i < gone->worker_count; i++)
        worker_fini(&gone->workers[i]);
    background_drain();
    journal_fini(&gone->journal);
    lifecycle_server_end(gone);
    store_destroy(&gone->store);
    gate_fini(&gone->gate);
    mem_free(gone->workers);
    mem_free(gone);
    instance = NULL;
    *server = NULL;
}

/* Pins thread i to processor first + i, when server-thread-affinity says so. */
static void set_affinity(const struct worker *worker)
{
    int64_t first = OPTION_GET(option_server_thread_affinity);

    if (first > 0 && !thread_set_affinity((int)(first - 1) + (int)worker->index))
        log_warning("Can't bind thread %u to processor %d", worker->index, (int)(first - 1) + (int)worker->index);
}

static void worker_thread(void *argument)
{
    set_affinity(argument);
    worker_run(argument);
}

void server_run(struct server *server)
{
    thread_assert_main();
    lifecycle_server_begin(server);
    gate_traffic_begin();
    for (unsigned i = 1; i < server->worker_count; i++) {
        char name[32];

        snprintf(name, sizeof(name), "worker-%u", i);
        thread_start(&server->workers[i].thread, name, worker_thread, &server->workers[i]);
    }
    worker_thread(&server->workers[0]);
    for (unsigned i = 1; i < server->worker_count; i++)
        thread_join(&server->workers[i].thread);
    for (unsigned i = 0; i < server->worker_count; i++) {
        if (gate_is_owner(&server->workers[i].member)) { /* it ended with the gate closed */
            gate_take_over(&server->workers[i].member);
            gate_open(&server->workers[i].member);
        }
    }
    gate_traffic_end();
}

int64_t server_hz(const struct server *server)
{
    uint64_t clients = atomic_load_explicit(&server->client_count, memory_order_relaxed);
    int64_t hz = OPTION_GET(option_hz);

    while (OPTION_IS(option_dynamic_hz) && hz < OPTION_HZ_MOST && clients / (uint64_t)hz > CLIENTS_A_TURN)
        hz = MIN(hz * 2, (int64_t)OPTION_HZ_MOST);
    return hz;
}

void server_stop(struct server *server)
{
    atomic_store_explicit(&server->stopping, true, memory_order_relaxed);
    for (unsigned i = 0; i < server->worker_count; i++) {
        atomic_store_explicit(&server->workers[i].stop, true, memory_order_relaxed);
        worker_wake(&server->workers[i]);
    }
}

void server_wake_from_signal(void)
{
    struct server *server = instance;

    if (server != NULL && !atomic_load_explicit(&loops_are_gone, memory_order_relaxed))
        loop_wake(server->workers[0].loop); /* works whatever locks the interrupted thread holds */
}

void server_pause_cron(struct server *server, bool paused)
{
    atomic_store_explicit(&server->cron_paused, paused, memory_order_relaxed);
    if (!paused)
        worker_wake(&server->workers[0]); /* a signal may have come meanwhile */
}

/* ------------------------------------------------------------------------------------------------------- rates -- */

void server_sample_rates(struct server *server)
{
    struct rate_meter *meter = &server->meter;
    struct rate_sample now = {.at_us = (int64_t)clock_monotonic_us()};
    const struct rate_sample *oldest = &meter->samples[meter->next];
    uint64_t waiting = 0;

    worker_assert_zero(&server->workers[0]);
    for (unsigned i = 0; i < server->worker_count; i++) {
        const struct worker_stats *stats = &server->workers[i].stats;
        struct loop_times times;

        now.commands += atomic_load_explicit(&stats->commands_processed, memory_order_relaxed);
        now.net_in += atomic_load_explicit(&stats->net_input_bytes, memory_order_relaxed);
        now.net_out += atomic_load_explicit(&stats->net_output_bytes, memory_order_relaxed);
        now.turns += atomic_load_explicit(&stats->loop_turns, memory_order_relaxed);
        loop_times(server->workers[i].loop, &times);
        now.serving_us += tick_to_ns(times.serving) / 1000;
        now.waiting += atomic_load_explicit(&stats->waiting_commands, memory_order_relaxed);
    }
    if (oldest->at_us != 0 && now.at_us > oldest->at_us && now.commands >= oldest->commands) {
        uint64_t span_us = (uint64_t)(now.at_us - oldest->at_us);

        atomic_store_explicit(&meter->commands, (now.commands - oldest->commands) * 1000000 / span_us,
                              memory_order_relaxed);
        atomic_store_explicit(&meter->net_in, (now.net_in - oldest->net_in) * 1000000 / span_us, memory_order_relaxed);
        atomic_store_explicit(&meter->net_out, (now.net_out - oldest->net_out) * 1000000 / span_us,
                              memory_order_relaxed);
        atomic_store_explicit(&meter->turns, (now.turns - oldest->turns) * 1000000 / span_us, memory_order_relaxed);
        atomic_store_explicit(&meter->serving_us, (now.serving_us - oldest->serving_us) * 1000000 / span_us,
                              memory_order_relaxed);
    }
    meter->samples[meter->next] = now;
    meter->next = (meter->next + 1) % RATE_SAMPLES;
    for (unsigned i = 0; i < RATE_SAMPLES; i++)
        waiting += meter->samples[i].waiting;
    atomic_store_explicit(&meter->waiting_millis, waiting * 1000 / RATE_SAMPLES, memory_order_relaxed);
}

void server_rates(const struct server *server, struct rates *rates)
{
    rates->operations = (double)atomic_load_explicit(&server->meter.commands, memory_order_relaxed);
    rates->input_bytes = (double)atomic_load_explicit(&server->meter.net_in, memory_order_relaxed);
    rates->turns = (double)atomic_load_explicit(&server->meter.turns, memory_order_relaxed);
    rates->serving_us = (double)atomic_load_explicit(&server->meter.serving_us, memory_order_relaxed);
    rates->waiting_commands = (double)atomic_load_explicit(&server->meter.waiting_millis, memory_order_relaxed) / 1000;
    rates->output_bytes = (double)atomic_load_explicit(&server->meter.net_out, memory_order_relaxed);
}

/* ------------------------------------------------------------------------------------------------- all clients -- */

void server_each_client(struct server *server, void (*visit)(const struct client_card *card, void *context),
                        void *context)
{
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker *worker = &server->workers[i];

        spinlock_acquire(&worker->roster_lock);
        LIST_FOREACH(node, &worker->roster)
            visit(container_of(node, struct client_card, node), context);
        spinlock_release(&worker->roster_lock);
    }
}

unsigned server_request_clients(struct worker *asking, uint32_t request,
                                bool (*wanted)(struct client_card *card, void *context), void *context,
                                uint64_t *workers)
{
    struct server *server = asking->server;
    unsigned count = 0;
    uint64_t mask = 0;

    worker_assert_self(asking);
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker *worker = &server->workers[i];
        unsigned before = count;

        spinlock_acquire(&worker->roster_lock);
        LIST_FOREACH(node, &worker->roster) {
            struct client_card *card = container_of(node, struct client_card, node);

            if (!wanted(card, context))
                continue;
            if ((request & CLIENT_REQUEST_KILL) != 0)
                (void)client_card_claim(card, CLIENT_WAIT_KILLED);
            atomic_fetch_or_explicit(&card->requests, request, memory_order_release);
            count++;
        }
        spinlock_release(&worker->roster_lock);
        if (count != before) {
            atomic_store_explicit(&worker->has_requests, true, memory_order_release);
            mask |= UINT64_C(1) << i;
            deliveries_call_later(asking, worker);
        }
    }
    if (workers != NULL)
        *workers = mask;
    return count;
}
