#include "server/diagnose/info_rows.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/version.h"
#include "server/command/command.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/config/options_process.h"
#include "server/diagnose/info_listeners.h"
#include "server/durable/libraries.h"
#include "server/memory/memory_limit.h"
#include "server/memory/memory_report.h"
#include "server/core/stats_since.h"
#include "server/observe/timing.h"
#include "server/process/identity.h"
#include "server/pubsub/topics.h"
#include "server/pubsub/tracking_table.h"
#include "server/run/migrate_link.h"
#include "server/run/rendezvous.h"
#include "server/upkeep/defrag_cycle.h"
#include "store/access.h"

#include <stdio.h>
#include <string.h>

/* The statistics for the INFO of this thread. */
static _Thread_local struct {
    const struct server_stats *stats;
    struct mem_stats memory;
    size_t used, peak, resident;
} now;

void info_rows_mark_ready(void)
{
    gate_assert_main_alone();
    memory_report_mark_startup();
}

static void take(void *picture, const struct info_moment *moment)
{
    (void)moment;
    stats_since_collect(picture);
    now.stats = picture;
    mem_stats(&now.memory);
    now.used = mem_used();
    now.peak = mem_peak();
    now.resident = mem_rss();
}

const struct info_source info_rows_source = {sizeof(struct server_stats), .take = take};

/* --- values --- */

static void human(struct buffer *buffer, uint64_t bytes)
{
    char text[NUMBER_DOUBLE_SPACE];

    number_format_bytes_human(text, bytes);
    buffer_append_text(buffer, text);
}

static double ratio(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (double)part / (double)whole;
}

/* Functions by the dozen that differ in an expression. */
#define PUT(name, ...)                                                 \
    static void put_##name(struct buffer *buffer, const void *picture) \
    {                                                                  \
        (void)picture;                                                 \
        __VA_ARGS__;                                                   \
    }
#define PUT_U64(name, expression) PUT(name, buffer_append_u64(buffer, (uint64_t)(expression)))
#define PUT_I64(name, expression) PUT(name, buffer_append_i64(buffer, (int64_t)(expression)))
#define PUT_TEXT(name, expression) PUT(name, buffer_append_text(buffer, expression))
#define PUT_HUMAN(name, expression) PUT(name, human(buffer, (uint64_t)(expression)))
#define PUT_RATIO(name, part, whole) \
    PUT(name, buffer_printf(buffer, "%.2f", ratio((uint64_t)(part), (uint64_t)(whole))))
#define PUT_STAT(field) PUT_U64(field, now.stats->field)

PUT_U64(zero, 0)
PUT_I64(minus_one, -1)
PUT_TEXT(zero_fraction, "0.00")
PUT(nothing, (void)buffer)

/* replies that wait for other workers */
static struct rendezvous_stats rendezvous_now(void)
{
    struct rendezvous_stats stats;

    rendezvous_stats(&stats);
    return stats;
}

PUT_U64(rendezvous_count, rendezvous_now().count)
PUT_U64(rendezvous_last_us, rendezvous_now().last_us)
PUT_U64(rendezvous_most_us, rendezvous_now().most_us)

/* scripts */
PUT_U64(vm_bytes, script_facts().vm_bytes)
PUT_HUMAN(vm_human, script_facts().vm_bytes)
PUT_U64(scripts_bytes, script_facts().cached_scripts_bytes)
PUT_U64(cached_scripts, script_facts().cached_scripts)
PUT_U64(evicted_scripts, script_facts().evicted_scripts)
PUT_U64(functions, script_facts().functions)
PUT_U64(libraries, script_facts().libraries)
PUT_U64(functions_bytes, script_facts().functions_bytes)
PUT_U64(all_scripts_bytes, script_facts().cached_scripts_bytes + script_facts().functions_bytes)
PUT_HUMAN(all_scripts_human, script_facts().cached_scripts_bytes + script_facts().functions_bytes)

/* server */
PUT_TEXT(redis_version, KEYDB_REDIS_VERSION)
PUT_TEXT(keydb_version, option_version_override.data != NULL ? option_version_override.data : KEYDB_VERSION)
PUT_TEXT(git_sha1, KEYDB_GIT_SHA1)
PUT_U64(git_dirty, KEYDB_GIT_DIRTY)
PUT(build_id, buffer_printf(buffer, "%llx", (unsigned long long)config_build_id()))
PUT_TEXT(mode, "standalone")
PUT_TEXT(multiplexing_api, now.stats->loop_name != NULL ? now.stats->loop_name : "epoll")
PUT_TEXT(supervised, OPTION_GET(option_supervised) == SUPERVISED_SYSTEMD   ? "systemd"
                     : OPTION_GET(option_supervised) == SUPERVISED_UPSTART ? "upstart"
                                                                           : "no")
PUT_I64(tcp_port, OPTION_GET(option_port) != 0 ? OPTION_GET(option_port) : OPTION_GET(option_tls_port))
PUT_I64(hz, now.stats->hz)
PUT_I64(configured_hz, OPTION_GET(option_hz))
PUT_TEXT(executable, config_executable_path())
PUT_TEXT(config_file, config_file_path())

/* clients */
PUT_STAT(connected_clients)
PUT_I64(maxclients, OPTION_GET(option_maxclients))
PUT_STAT(max_input_buffer_bytes)
PUT_STAT(max_output_buffer_bytes)
PUT_STAT(blocked_clients)
PUT_STAT(tracking_clients)
PUT_STAT(pubsub_clients)
PUT_U64(pubsub_channels, topics_count(TOPIC_CHANNEL))
PUT_U64(pubsub_patterns, topics_count(TOPIC_PATTERN))
PUT_U64(pubsubshard_channels, topics_count(TOPIC_SHARD))
PUT_U64(tracking_keys, tracking_table_key_count())
PUT_U64(tracking_items, tracking_table_item_count())
PUT_U64(tracking_prefixes, topics_count(TOPIC_PREFIX))
PUT_STAT(watching_clients)
PUT_STAT(clients_in_timeout_table)
PUT_STAT(current_thread)
PUT_STAT(total_watched_keys)
PUT_STAT(total_blocking_keys)
PUT_STAT(total_blocking_keys_on_nokey)
static void put_thread_clients(struct buffer *buffer, const void *picture)
{
    (void)picture;
    for (unsigned i = 0; i < now.stats->thread_count; i++)
        buffer_printf(buffer, "thread_%u_clients:%llu\r\n", i, (unsigned long long)now.stats->thread_clients[i]);
}

/* memory */
static struct memory_report report(void)
{
    struct memory_report report;

    memory_report_collect(&report, now.stats);
    return report;
}
PUT_U64(used, now.used)
PUT_HUMAN(used_human, now.used)
PUT_U64(resident, now.resident)
PUT_HUMAN(resident_human, now.resident)
PUT_U64(peak, now.peak)
PUT_HUMAN(peak_human, now.peak)
PUT(peak_percent, buffer_printf(buffer, "%.2f%%", 100 * ratio(now.used, now.peak)))
PUT_U64(overhead, report().overhead)
PUT_U64(start_memory, memory_report_startup())
PUT_U64(dataset, report().dataset)
static void put_dataset_percent(struct buffer *buffer, const void *picture)
{
    (void)picture;
    struct memory_report all = report();

    buffer_printf(buffer, "%.2f%%", 100 * ratio(all.dataset, all.used > all.startup ? all.used - all.startup : 0));
}
PUT_U64(allocated, now.memory.allocated)
PUT_U64(active, now.memory.active)
PUT_U64(allocator_resident, now.memory.resident)
PUT_U64(muzzy, now.memory.muzzy)
PUT_U64(system_total, mem_system_total())
PUT_HUMAN(system_total_human, mem_system_total())
PUT_STAT(frees_pending)
PUT_STAT(frees_done)
PUT_U64(maxmemory, OPTION_GET_U64(option_maxmemory))
PUT_U64(not_counted, memory_set_aside())
PUT_U64(exceeded_total, memory_exceeded_total_ms())
PUT_U64(exceeded_current, memory_exceeded_current_ms())
PUT_HUMAN(maxmemory_human, OPTION_GET_U64(option_maxmemory))
PUT(maxmemory_policy, (void)config_get_text("maxmemory-policy", buffer))
PUT_RATIO(fragmentation_ratio, now.memory.active, now.memory.allocated)
PUT_I64(fragmentation_bytes, (int64_t)now.memory.active - (int64_t)now.memory.allocated)
PUT_RATIO(allocator_rss_ratio, now.memory.resident, now.memory.active)
PUT_I64(allocator_rss_bytes, (int64_t)now.memory.resident - (int64_t)now.memory.active)
PUT_RATIO(rss_overhead_ratio, now.resident, now.memory.resident)
PUT_I64(rss_overhead_bytes, (int64_t)now.resident - (int64_t)now.memory.resident)
PUT_RATIO(mem_fragmentation_ratio, now.resident, now.used)
PUT_I64(mem_fragmentation_bytes, (int64_t)now.resident - (int64_t)now.used)
PUT_STAT(client_memory_bytes)
PUT_TEXT(allocator_name, mem_allocator_name())
PUT_TEXT(storage_provider, "none")
static void put_available_memory(struct buffer *buffer, const void *picture)
{
    (void)picture;
    uint64_t bytes;

    if (memory_available(&bytes))
        buffer_append_u64(buffer, bytes);
    else
        buffer_append_text(buffer, "unavailable");
}

/* stats */
PUT_STAT(connections_received)
PUT_STAT(commands_processed)
PUT_U64(ops_per_second, now.stats->ops_per_second + 0.5)
PUT_STAT(net_input_bytes)
PUT_STAT(net_output_bytes)
PUT(input_kbps, buffer_printf(buffer, "%.2f", now.stats->input_kb_per_second))
PUT(output_kbps, buffer_printf(buffer, "%.2f", now.stats->output_kb_per_second))
PUT_STAT(rejected_connections)
PUT_STAT(expired_keys)
PUT_STAT(expired_members)
PUT_STAT(evicted_keys)
PUT_STAT(evicted_clients)
PUT_STAT(keyspace_hits)
PUT_STAT(keyspace_misses)
PUT_STAT(error_replies)
PUT_STAT(reads_processed)
PUT_STAT(writes_processed)
PUT_STAT(prefetches)
PUT_STAT(prefetched_keys)
PUT_STAT(query_buffer_limit_disconnections)
PUT_STAT(output_buffer_limit_disconnections)
PUT_STAT(loop_turns)
PUT_U64(turns_per_second, now.stats->turns_per_second + 0.5)
PUT_U64(turn_us, now.stats->turn_us + 0.5)
PUT_STAT(loop_us)
PUT_STAT(command_us)
PUT_STAT(aof_us)
PUT_STAT(upkeep_us)
PUT_STAT(turn_us_most)
PUT_STAT(turn_commands_most)
PUT_STAT(expire_cuts)
PUT_U64(expire_ms, now.stats->expire_us / 1000)
PUT_U64(defrag_running, defrag_cycle_percent())
PUT_STAT(defrag_hits)
PUT_STAT(defrag_misses)
PUT_STAT(defrag_key_hits)
PUT_STAT(defrag_key_misses)
PUT_U64(defrag_ms, now.stats->defrag_us / 1000)
PUT_U64(defrag_current_ms, defrag_cycle_current_us() / 1000)
PUT_STAT(waiting_commands)
PUT(average_waiting_commands, buffer_printf(buffer, "%f", now.stats->average_waiting_commands))
PUT_STAT(acl_denied_auth)
PUT_STAT(acl_denied_command)
PUT_STAT(acl_denied_key)
PUT_STAT(acl_denied_channel)

/* replication */
PUT_TEXT(role, "master")
PUT_TEXT(failover_state, "no-failover")
PUT_TEXT(replication_id, identity_replication_id())
PUT_TEXT(second_replication_id, "0000000000000000000000000000000000000000")
PUT(migrate_links, buffer_append_u64(buffer, migrate_links_count()))
PUT(backlog_size, (void)config_get_text("repl-backlog-size", buffer))

/* cpu */
PUT_STAT(thread_count)
PUT_STAT(lock_waits)
PUT_STAT(parked_retries)
PUT_STAT(parked_by_gate)
PUT_STAT(parked_tries_most)

/* commandstats, errorstats, latencystats, keyspace */

/* The name of a field ends at a colon, and there is a command "host:". */
static void put_command_name(struct buffer *buffer, const char *what, struct slice name)
{
    buffer_append_text(buffer, what);
    for (size_t i = 0; i < name.size; i++)
        buffer_append_char(buffer, name.data[i] == ':' ? '_' : name.data[i]);
}

static void put_command_lines(struct buffer *buffer, const void *picture)
{
    (void)picture;
    for (uint32_t id = 0; id < command_count(); id++) {
        struct slice name = command_at(id)->full_name;
        struct command_stats stats = {0};
        struct command_times *times = timing_collect(id);
        uint64_t calls = times != NULL ? timing_calls(times) : 0, usec = times != NULL ? timing_usec(times) : 0;

        mem_free(times);
        if (!stats_since_command(id, &stats) && calls == 0)
            continue;
        put_command_name(buffer, "cmdstat_", name);
        buffer_printf(buffer, ":calls=%llu,usec=%llu,usec_per_call=%.2f,rejected_calls=%llu,failed_calls=%llu\r\n",
                      (unsigned long long)calls, (unsigned long long)usec, ratio(usec, calls),
                      (unsigned long long)stats.rejected_calls, (unsigned long long)stats.failed_calls);
    }
}

/* In order of their codes; each worker may have met others, and together not more are told than one may know. */
struct error_lines {
    struct error_line {
        char code[ERROR_CODE_BYTES];
        uint64_t count;
    } lines[ERROR_CODES_MOST];
    size_t count;
    uint64_t overflow;
};

static void note_error(void *context, const char *code, uint64_t count)
{
    struct error_lines *errors = context;
    size_t at = errors->count;

    if (at == ERROR_CODES_MOST || strcmp(code, ERROR_CODE_OVERFLOW) == 0) {
        errors->overflow += count;
        return;
    }
    for (; at > 0 && strcmp(errors->lines[at - 1].code, code) > 0; at--)
        errors->lines[at] = errors->lines[at - 1];
    snprintf(errors->lines[at].code, ERROR_CODE_BYTES, "%s", code);
    errors->lines[at].count = count;
    errors->count++;
}

static void put_error_lines(struct buffer *buffer, const void *picture)
{
    (void)picture;
    struct error_lines *errors = mem_alloc_zero(sizeof(*errors));

    stats_since_errors(note_error, errors);
    for (size_t i = 0; i < errors->count; i++)
        buffer_printf(buffer, "errorstat_%s:count=%llu\r\n", errors->lines[i].code,
                      (unsigned long long)errors->lines[i].count);
    if (errors->overflow != 0)
        buffer_printf(buffer, "errorstat_%s:count=%llu\r\n", ERROR_CODE_OVERFLOW, (unsigned long long)errors->overflow);
    mem_free(errors);
}

static void put_latency_lines(struct buffer *buffer, const void *picture)
{
    (void)picture;
    const double *percents;
    size_t count = timing_percents(&percents);

    for (uint32_t id = 0; timing_is_tracking() && id < command_count(); id++) {
        struct slice name = command_at(id)->full_name;
        struct command_times *times = timing_collect(id);

        if (times != NULL && histogram_count(&times->ticks) != 0) {
            put_command_name(buffer, "latency_percentiles_usec_", name);
            buffer_append_char(buffer, ':');
            for (size_t i = 0; i < count; i++) {
                char percent[NUMBER_DOUBLE_SPACE];

                number_format_double_short(percent, percents[i]);
                buffer_printf(buffer, "%sp%s=%.3f", i == 0 ? "" : ",", percent,
                              (double)tick_to_ns(histogram_percentile(&times->ticks, percents[i])) / 1000);
            }
            buffer_append_text(buffer, "\r\n");
        }
        mem_free(times);
    }
}

static void put_database_lines(struct buffer *buffer, const void *picture)
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

/* --- rows --- */

#define ROW(name, put) INFO_VALUE(name, &info_rows_source, put_##put)
#define LINES(name, put) INFO_LINES(name, &info_rows_source, put_##put)

const struct info_row info_rows[] = {
    ROW("redis_version", redis_version),
    ROW("keydb_version", keydb_version),
    ROW("redis_git_sha1", git_sha1),
    ROW("redis_git_dirty", git_dirty),
    ROW("redis_build_id", build_id),
    ROW("redis_mode", mode),
    ROW("multiplexing_api", multiplexing_api),
    ROW("process_supervised", supervised),
    ROW("tcp_port", tcp_port),
    ROW("hz", hz),
    ROW("configured_hz", configured_hz),
    ROW("executable", executable),
    ROW("config_file", config_file),
    INFO_LINES("listener<n>", NULL, info_append_listeners),
    ROW("io_threads_active", zero),
    ROW("features", nothing),

    ROW("connected_clients", connected_clients),
    ROW("cluster_connections", zero),
    ROW("maxclients", maxclients),
    ROW("client_recent_max_input_buffer", max_input_buffer_bytes),
    ROW("client_recent_max_output_buffer", max_output_buffer_bytes),
    ROW("blocked_clients", blocked_clients),
    ROW("tracking_clients", tracking_clients),
    ROW("pubsub_clients", pubsub_clients),
    ROW("watching_clients", watching_clients),
    ROW("clients_in_timeout_table", clients_in_timeout_table),
    ROW("current_client_thread", current_thread),
    LINES("thread_<n>_clients", thread_clients),
    ROW("total_watched_keys", total_watched_keys),
    ROW("total_blocking_keys", total_blocking_keys),
    ROW("total_blocking_keys_on_nokey", total_blocking_keys_on_nokey),

    ROW("used_memory", used),
    ROW("used_memory_human", used_human),
    ROW("used_memory_rss", resident),
    ROW("used_memory_rss_human", resident_human),
    ROW("used_memory_peak", peak),
    ROW("used_memory_peak_human", peak_human),
    ROW("used_memory_peak_perc", peak_percent),
    ROW("used_memory_overhead", overhead),
    ROW("used_memory_startup", start_memory),
    ROW("used_memory_dataset", dataset),
    ROW("used_memory_dataset_perc", dataset_percent),
    ROW("allocator_allocated", allocated),
    ROW("allocator_active", active),
    ROW("allocator_resident", allocator_resident),
    ROW("allocator_muzzy", muzzy),
    ROW("total_system_memory", system_total),
    ROW("total_system_memory_human", system_total_human),
    ROW("used_memory_lua", vm_bytes),
    ROW("used_memory_vm_eval", vm_bytes),
    ROW("used_memory_lua_human", vm_human),
    ROW("used_memory_scripts_eval", scripts_bytes),
    ROW("number_of_cached_scripts", cached_scripts),
    ROW("number_of_functions", functions),
    ROW("number_of_libraries", libraries),
    ROW("used_memory_vm_functions", zero),
    ROW("used_memory_vm_total", vm_bytes),
    ROW("used_memory_vm_total_human", vm_human),
    ROW("used_memory_functions", functions_bytes),
    ROW("used_memory_scripts", all_scripts_bytes),
    ROW("used_memory_scripts_human", all_scripts_human),
    ROW("maxmemory", maxmemory),
    ROW("maxmemory_human", maxmemory_human),
    ROW("maxmemory_policy", maxmemory_policy),
    ROW("allocator_frag_ratio", fragmentation_ratio),
    ROW("allocator_frag_bytes", fragmentation_bytes),
    ROW("allocator_rss_ratio", allocator_rss_ratio),
    ROW("allocator_rss_bytes", allocator_rss_bytes),
    ROW("rss_overhead_ratio", rss_overhead_ratio),
    ROW("rss_overhead_bytes", rss_overhead_bytes),
    ROW("mem_fragmentation_ratio", mem_fragmentation_ratio),
    ROW("mem_fragmentation_bytes", mem_fragmentation_bytes),
    ROW("mem_not_counted_for_evict", not_counted),
    ROW("mem_replication_backlog", zero),
    ROW("mem_total_replication_buffers", zero),
    ROW("mem_clients_slaves", zero),
    ROW("mem_clients_normal", client_memory_bytes),
    ROW("mem_cluster_links", zero),
    ROW("mem_allocator", allocator_name),
    ROW("mem_overhead_db_hashtable_rehashing", zero),
    ROW("active_defrag_running", defrag_running),
    ROW("lazyfree_pending_objects", frees_pending),
    ROW("lazyfreed_objects", frees_done),
    ROW("storage_provider", storage_provider),
    ROW("available_system_memory", available_memory),

    ROW("async_loading", zero),
    ROW("module_fork_in_progress", zero),
    ROW("module_fork_last_cow_size", zero),

    ROW("total_connections_received", connections_received),
    ROW("total_commands_processed", commands_processed),
    ROW("instantaneous_ops_per_sec", ops_per_second),
    ROW("total_net_input_bytes", net_input_bytes),
    ROW("total_net_output_bytes", net_output_bytes),
    ROW("total_net_repl_input_bytes", zero),
    ROW("total_net_repl_output_bytes", zero),
    ROW("instantaneous_input_kbps", input_kbps),
    ROW("instantaneous_output_kbps", output_kbps),
    ROW("instantaneous_input_repl_kbps", zero_fraction),
    ROW("instantaneous_output_repl_kbps", zero_fraction),
    ROW("rejected_connections", rejected_connections),
    ROW("sync_full", zero),
    ROW("sync_partial_ok", zero),
    ROW("sync_partial_err", zero),
    ROW("expired_keys", expired_keys),
    ROW("expired_subkeys", expired_members),
    ROW("expired_stale_perc", zero_fraction),
    ROW("expired_time_cap_reached_count", expire_cuts),
    ROW("expire_cycle_cpu_milliseconds", expire_ms),
    ROW("rendezvous_count", rendezvous_count),
    ROW("rendezvous_last_usec", rendezvous_last_us),
    ROW("rendezvous_max_usec", rendezvous_most_us),
    ROW("evicted_keys", evicted_keys),
    ROW("evicted_clients", evicted_clients),
    ROW("evicted_scripts", evicted_scripts),
    ROW("total_eviction_exceeded_time", exceeded_total),
    ROW("current_eviction_exceeded_time", exceeded_current),
    ROW("keyspace_hits", keyspace_hits),
    ROW("keyspace_misses", keyspace_misses),
    ROW("pubsub_channels", pubsub_channels),
    ROW("pubsub_patterns", pubsub_patterns),
    ROW("pubsubshard_channels", pubsubshard_channels),
    ROW("migrate_cached_sockets", migrate_links),
    ROW("slave_expires_tracked_keys", zero),
    ROW("active_defrag_hits", defrag_hits),
    ROW("active_defrag_misses", defrag_misses),
    ROW("active_defrag_key_hits", defrag_key_hits),
    ROW("active_defrag_key_misses", defrag_key_misses),
    ROW("total_active_defrag_time", defrag_ms),
    ROW("current_active_defrag_time", defrag_current_ms),
    ROW("tracking_total_keys", tracking_keys),
    ROW("tracking_total_items", tracking_items),
    ROW("tracking_total_prefixes", tracking_prefixes),
    ROW("unexpected_error_replies", zero),
    ROW("total_error_replies", error_replies),
    ROW("dump_payload_sanitizations", zero),
    ROW("total_reads_processed", reads_processed),
    ROW("total_writes_processed", writes_processed),
    ROW("instantaneous_lock_contention", waiting_commands),
    ROW("avg_lock_contention", average_waiting_commands),
    ROW("storage_provider_read_hits", zero),
    ROW("storage_provider_read_misses", zero),
    ROW("io_threaded_reads_processed", zero),
    ROW("io_threaded_writes_processed", zero),
    ROW("io_threaded_total_prefetch_batches", prefetches),
    ROW("io_threaded_total_prefetch_entries", prefetched_keys),
    ROW("client_query_buffer_limit_disconnections", query_buffer_limit_disconnections),
    ROW("client_output_buffer_limit_disconnections", output_buffer_limit_disconnections),
    ROW("reply_buffer_shrinks", zero),
    ROW("reply_buffer_expands", zero),
    ROW("eventloop_cycles", loop_turns),
    ROW("eventloop_duration_sum", loop_us),
    ROW("eventloop_duration_cmd_sum", command_us),
    ROW("instantaneous_eventloop_cycles_per_sec", turns_per_second),
    ROW("instantaneous_eventloop_duration_usec", turn_us),
    ROW("acl_access_denied_auth", acl_denied_auth),
    ROW("acl_access_denied_cmd", acl_denied_command),
    ROW("acl_access_denied_key", acl_denied_key),
    ROW("acl_access_denied_channel", acl_denied_channel),

    ROW("role", role),
    ROW("connected_slaves", zero),
    ROW("master_failover_state", failover_state),
    ROW("master_replid", replication_id),
    ROW("master_replid2", second_replication_id),
    ROW("master_repl_offset", zero),
    ROW("second_repl_offset", minus_one),
    ROW("repl_backlog_active", zero),
    ROW("repl_backlog_size", backlog_size),
    ROW("repl_backlog_first_byte_offset", zero),
    ROW("repl_backlog_histlen", zero),

    ROW("server_threads", thread_count),
    ROW("long_lock_waits", lock_waits),
    ROW("parked_retries", parked_retries),
    ROW("parked_by_gate", parked_by_gate),
    ROW("parked_tries_most", parked_tries_most),

    LINES("cmdstat_<command>", command_lines),
    LINES("errorstat_<code>", error_lines),
    LINES("latency_percentiles_usec_<command>", latency_lines),
    ROW("cluster_enabled", zero),
    LINES("db<n>", database_lines),

    ROW("eventloop_duration_aof_sum", aof_us),
    ROW("eventloop_duration_cron_sum", upkeep_us),
    ROW("eventloop_duration_max", turn_us_most),
    ROW("eventloop_cmd_per_cycle_max", turn_commands_most),
    {0},
};

void info_rows_setup(void)
{
    gate_assert_main_alone();
    memory_report_mark_startup();
    config_on_reset_stat(timing_reset);
}
