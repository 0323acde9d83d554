#include "server/core/stats.h"

#include "base/clock.h"
#include "base/tick.h"
#include "server/core/client.h"
#include "server/core/server.h"

#include <string.h>

enum { SOURCES_MOST = 8 };

static void (*sources[SOURCES_MOST])(struct server_stats *stats); /* const while there are workers */
static size_t source_count;

void server_stats_add_source(void (*fill)(struct server_stats *stats))
{
    assert(source_count < SOURCES_MOST);
    for (size_t i = 0; i < source_count; i++) {
        if (sources[i] == fill)
            return;
    }
    sources[source_count++] = fill;
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static uint64_t ticks_to_us(uint64_t ticks)
{
    return tick_to_ns(ticks) / 1000;
}

static void add_turns(struct server_stats *stats, const struct worker *worker)
{
    uint64_t aof_us = ticks_to_us(tick_sum(&worker->stats.aof_ticks)), upkeep_us;
    struct loop_times times;

    loop_times(worker->loop, &times);
    upkeep_us = ticks_to_us(times.timers + tick_sum(&worker->stats.upkeep_ticks));
    stats->loop_us += ticks_to_us(times.serving);
    if (worker->index == 0)
        stats->main_thread_us += ticks_to_us(times.serving);
    stats->command_us += ticks_to_us(tick_sum(&worker->stats.command_ticks));
    stats->aof_us += aof_us;
    stats->upkeep_us += upkeep_us > aof_us ? upkeep_us - aof_us : 0; /* a turn's end adds the latter first */
    stats->turn_us_most = MAX(stats->turn_us_most, ticks_to_us(times.longest));
    stats->turn_commands_most = MAX(stats->turn_commands_most, read_counter(&worker->stats.turn_commands_most));
}

static void add_worker(struct server_stats *stats, const struct worker *worker)
{
#define ADD(name) stats->name += read_counter(&worker->stats.name);
    WORKER_COUNTERS(ADD)
    WORKER_GAUGES(ADD)
#undef ADD
#define ADD(name) stats->name += read_counter(&worker->counters.name);
    STORE_COUNTERS(ADD)
#undef ADD
    stats->parked_tries_most = MAX(stats->parked_tries_most, read_counter(&worker->stats.parked_tries_most));
    add_turns(stats, worker);
    for (unsigned i = 0; i < RECENT_SECONDS; i++) {
        stats->max_input_buffer_bytes = MAX(stats->max_input_buffer_bytes,
                                            read_counter(&worker->stats.recent_input[i]));
        stats->max_output_buffer_bytes = MAX(stats->max_output_buffer_bytes,
                                             read_counter(&worker->stats.recent_output[i]));
    }
#define COPY(name) stats->threads[worker->index].name = read_counter(&worker->stats.name);
    THREAD_COUNTERS(COPY)
#undef COPY
    stats->thread_clients[worker->index] = read_counter(&worker->stats.client_count);
}

static void add_card(const struct client_card *card, void *context)
{
    struct server_stats *stats = context;
    uint64_t query_bytes = read_counter(&card->query_capacity), output_bytes = read_counter(&card->output_bytes);
    uint32_t watched = atomic_load_explicit(&card->watched_count, memory_order_relaxed);

    stats->connected_clients += (atomic_load_explicit(&card->flags, memory_order_relaxed) & CLIENT_REPLICA) == 0;
    stats->blocked_clients += (atomic_load_explicit(&card->flags, memory_order_relaxed) &
                               (CLIENT_BLOCKED | CLIENT_PAUSED)) != 0;
    stats->watching_clients += watched != 0;
    stats->total_watched_keys += watched;
    stats->tracking_clients += (atomic_load_explicit(&card->flags, memory_order_relaxed) & CLIENT_TRACKING) != 0;
    stats->pubsub_clients += (atomic_load_explicit(&card->flags, memory_order_relaxed) & CLIENT_PUBSUB) != 0;
    stats->max_input_buffer_bytes = MAX(stats->max_input_buffer_bytes, query_bytes);
    stats->max_output_buffer_bytes = MAX(stats->max_output_buffer_bytes, output_bytes);
    stats->client_memory_bytes += client_card_memory_bytes(card);
}

void server_stats_collect_sums(struct server_stats *stats)
{
    const struct server *server = server_instance();

    memset(stats, 0, sizeof(*stats));
    stats->thread_count = server->worker_count;
    for (unsigned i = 0; i < server->worker_count; i++)
        add_worker(stats, &server->workers[i]);
}

void server_stats_collect(struct server_stats *stats)
{
    struct server *server = server_instance();
    const struct worker *here = worker_self();
    struct rates rates;

    server_stats_collect_sums(stats);
    server_each_client(server, add_card, stats);
    stats->total_blocking_keys = atomic_load_explicit(&server->store->waited_count, memory_order_relaxed);
    stats->total_blocking_keys_on_nokey = atomic_load_explicit(&server->store->loss_count, memory_order_relaxed);
    server_rates(server, &rates);
    access_background_frees(&stats->frees_pending, &stats->frees_done);
    for (size_t i = 0; i < source_count; i++)
        sources[i](stats);
    stats->ops_per_second = rates.operations;
    stats->input_kb_per_second = rates.input_bytes / 1024;
    stats->output_kb_per_second = rates.output_bytes / 1024;
    stats->turns_per_second = rates.turns;
    stats->turn_us = rates.turns > 0 ? rates.serving_us / rates.turns : 0;
    stats->average_waiting_commands = rates.waiting_commands;
    stats->current_thread = here != NULL ? here->index : 0;
    stats->loop_name = loop_kind_name(server->workers[0].loop);
    stats->hz = server_hz(server);
}

void server_stats_forget_most(void)
{
    struct server *server = server_instance();

    for (unsigned i = 0; i < server->worker_count; i++) {
        loop_forget_longest(server->workers[i].loop);
        atomic_store_explicit(&server->workers[i].stats.turn_commands_most, 0, memory_order_relaxed);
    }
}

bool server_command_stats(uint32_t command_id, struct command_stats *stats)
{
    const struct server *server = server_instance();

    memset(stats, 0, sizeof(*stats));
    for (unsigned i = 0; i < server->worker_count; i++) {
        const struct worker_stats *worker = &server->workers[i].stats;

        stats->failed_calls += read_counter(&worker->failed_calls[command_id]);
        stats->rejected_calls += read_counter(&worker->rejected_calls[command_id]);
    }
    return stats->failed_calls != 0 || stats->rejected_calls != 0;
}

/* Sums over all workers, one code after the other: each code is visited at the first worker that has it. */
static uint64_t error_total(const struct server *server, const char *code, unsigned *first_worker)
{
    uint64_t total = 0;

    *first_worker = server->worker_count;
    for (unsigned i = server->worker_count; i-- > 0;) {
        const struct worker_stats *stats = &server->workers[i].stats;
        uint32_t count = atomic_load_explicit(&stats->error_code_count, memory_order_acquire);

        for (uint32_t k = 0; k < count; k++) {
            if (strcmp(stats->error_codes[k].code, code) == 0) {
                total += read_counter(&stats->error_codes[k].count);
                *first_worker = i;
            }
        }
    }
    return total;
}

void server_error_stats(void (*visit)(void *context, const char *code, uint64_t count), void *context)
{
    const struct server *server = server_instance();

    for (unsigned i = 0; i < server->worker_count; i++) {
        const struct worker_stats *stats = &server->workers[i].stats;
        uint32_t count = atomic_load_explicit(&stats->error_code_count, memory_order_acquire);

        for (uint32_t k = 0; k < count; k++) {
            unsigned first_worker;
            uint64_t total = error_total(server, stats->error_codes[k].code, &first_worker);

            if (first_worker == i && total != 0)
                visit(context, stats->error_codes[k].code, total);
        }
    }
}

unsigned server_database_count(void)
{
    return server_instance()->store->database_count;
}

void server_keyspace_stats(unsigned db, struct keyspace_stats *stats)
{
    struct database_totals totals;

    store_database_totals(server_instance()->store, db, &totals);
    stats->keys = totals.keys;
    stats->expires = totals.expires;
    stats->average_ttl_ms = totals.expires != 0 ? MAX(totals.average_deadline_ms - clock_wall_ms(), 0) : 0;
}
