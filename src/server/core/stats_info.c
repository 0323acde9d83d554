#include "server/core/stats_info.h"

#include "server/core/server.h"
#include "server/core/stats_since.h"

static void take(void *picture, const struct info_moment *moment)
{
    (void)moment;
    stats_since_collect(picture);
}

/* Clients cannot be looked at: their number is what the workers have counted. */
static bool take_safe(void *picture, const struct info_moment *moment)
{
    struct server_stats *stats = picture;

    (void)moment;
    if (server_instance() == NULL)
        return false;
    server_stats_collect_sums(stats);
    for (unsigned i = 0; i < stats->thread_count; i++)
        stats->connected_clients += stats->thread_clients[i];
    return true;
}

const struct info_source server_stats_source = {sizeof(struct server_stats), take, take_safe};

static void append_thread_clients(struct buffer *buffer, const void *picture)
{
    const struct server_stats *stats = picture;

    for (unsigned i = 0; i < stats->thread_count; i++)
        buffer_printf(buffer, "thread_%u_clients:%llu\r\n", i, (unsigned long long)stats->thread_clients[i]);
}

static void append_workers(struct buffer *buffer, const void *picture)
{
    const struct server_stats *stats = picture;

    for (unsigned i = 0; i < stats->thread_count; i++) {
        const struct thread_stats *thread = &stats->threads[i];

        buffer_printf(buffer,
                      "worker%u:clients=%llu,commands=%llu,errors=%llu,input_bytes=%llu,output_bytes=%llu,"
                      "lock_waits=%llu,turns=%llu\r\n",
                      i, (unsigned long long)stats->thread_clients[i], (unsigned long long)thread->commands_processed,
                      (unsigned long long)thread->error_replies, (unsigned long long)thread->net_input_bytes,
                      (unsigned long long)thread->net_output_bytes, (unsigned long long)thread->lock_waits,
                      (unsigned long long)thread->loop_turns);
    }
}

static void append_threads(struct buffer *buffer, const void *picture)
{
    const struct server_stats *stats = picture;

    for (unsigned i = 0; i < stats->thread_count; i++)
        buffer_printf(buffer, "io_thread_%u:clients=%llu,reads=%llu,writes=%llu\r\n", i,
                      (unsigned long long)stats->thread_clients[i],
                      (unsigned long long)stats->threads[i].reads_processed,
                      (unsigned long long)stats->threads[i].writes_processed);
}

static void append_main_thread_time(struct buffer *buffer, const void *picture)
{
    const struct server_stats *stats = picture;

    buffer_printf(buffer, "%.6f", (double)stats->main_thread_us / 1000000);
}

static void append_databases(struct buffer *buffer, const void *picture)
{
    (void)picture;
    for (unsigned db = 0; db < server_database_count(); db++) {
        struct keyspace_stats stats;

        server_keyspace_stats(db, &stats);
        if (stats.keys != 0)
            buffer_printf(buffer, "db%u:keys=%llu,expires=%llu,avg_ttl=%lld\r\n", db, (unsigned long long)stats.keys,
                          (unsigned long long)stats.expires, (long long)stats.average_ttl_ms);
    }
}

const struct info_row stats_info[] = {
    INFO_STAT("multiplexing_api", loop_name),
    INFO_STAT("hz", hz),

    INFO_STAT("connected_clients", connected_clients, INFO_SAFE),
    INFO_STAT("client_recent_max_input_buffer", max_input_buffer_bytes),
    INFO_STAT("client_recent_max_output_buffer", max_output_buffer_bytes),
    INFO_STAT("blocked_clients", blocked_clients),
    INFO_STAT("tracking_clients", tracking_clients),
    INFO_STAT("pubsub_clients", pubsub_clients),
    INFO_STAT("watching_clients", watching_clients),
    INFO_STAT("clients_in_timeout_table", clients_in_timeout_table),
    INFO_STAT("current_client_thread", current_thread),
    INFO_LINES("thread_<n>_clients", &server_stats_source, append_thread_clients),
    INFO_STAT("total_watched_keys", total_watched_keys),
    INFO_STAT("total_blocking_keys", total_blocking_keys),
    INFO_STAT("total_blocking_keys_on_nokey", total_blocking_keys_on_nokey),
    INFO_STAT("mem_clients_normal", client_memory_bytes),
    INFO_STAT("client_query_buffer_limit_disconnections", query_buffer_limit_disconnections),
    INFO_STAT("client_output_buffer_limit_disconnections", output_buffer_limit_disconnections),

    INFO_STAT("total_connections_received", connections_received, INFO_SAFE),
    INFO_STAT("rejected_connections", rejected_connections, INFO_SAFE),
    INFO_STAT("total_commands_processed", commands_processed, INFO_SAFE),
    INFO_STAT_ROUNDED("instantaneous_ops_per_sec", ops_per_second),
    INFO_STAT("total_error_replies", error_replies, INFO_SAFE),
    INFO_STAT("total_net_input_bytes", net_input_bytes, INFO_SAFE),
    INFO_STAT("total_net_output_bytes", net_output_bytes, INFO_SAFE),
    INFO_STAT("instantaneous_input_kbps", input_kb_per_second),
    INFO_STAT("instantaneous_output_kbps", output_kb_per_second),
    INFO_STAT("total_reads_processed", reads_processed, INFO_SAFE),
    INFO_STAT("total_writes_processed", writes_processed, INFO_SAFE),

    INFO_STAT("keyspace_hits", keyspace_hits, INFO_SAFE),
    INFO_STAT("keyspace_misses", keyspace_misses, INFO_SAFE),
    INFO_STAT("expired_keys", expired_keys, INFO_SAFE),
    INFO_STAT("expired_subkeys", expired_members),
    INFO_STAT("expired_fields", expired_members), /* Valkey's name */
    INFO_STAT("evicted_keys", evicted_keys, INFO_SAFE),
    INFO_STAT("lazyfree_pending_objects", frees_pending),
    INFO_STAT("lazyfreed_objects", frees_done),
    INFO_LINES("db<n>", NULL, append_databases),

    INFO_STAT("server_threads", thread_count),
    INFO_STAT("eventloop_cycles", loop_turns, INFO_SAFE),
    INFO_STAT("eventloop_duration_sum", loop_us),
    INFO_STAT("eventloop_duration_cmd_sum", command_us),
    INFO_STAT_ROUNDED("instantaneous_eventloop_cycles_per_sec", turns_per_second),
    INFO_STAT_ROUNDED("instantaneous_eventloop_duration_usec", turn_us),
    INFO_STAT("eventloop_duration_aof_sum", aof_us),
    INFO_STAT("eventloop_duration_cron_sum", upkeep_us),
    INFO_STAT("eventloop_duration_max", turn_us_most),
    INFO_STAT("eventloop_cmd_per_cycle_max", turn_commands_most),
    INFO_LINES("worker<n>", &server_stats_source, append_workers),
    INFO_LINES("io_thread_<n>", &server_stats_source, append_threads),
    INFO_VALUE("used_active_time_main_thread", &server_stats_source, append_main_thread_time),
    {0},
};
