#include "server/diagnose/info_rows.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/random.h"
#include "base/thread.h"
#include "base/version.h"
#include "server/command/command.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/config/options_process.h"
#include "server/diagnose/info_aof.h"
#include "server/diagnose/info_listeners.h"
#include "server/diagnose/info_persistence.h"
#include "server/durable/libraries.h"
#include "server/memory/memory_limit.h"
#include "server/memory/memory_report.h"
#include "server/observe/stats_since.h"
#include "server/observe/timing.h"
#include "server/process/availability_zone.h"
#include "server/pubsub/topics.h"
#include "server/pubsub/tracking_table.h"
#include "server/run/migrate_link.h"
#include "server/run/rendezvous.h"
#include "server/upkeep/defrag_cycle.h"
#include "store/access.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { SECONDS_PER_DAY = 86400, US_PER_SECOND = 1000000 };

static struct {
    uint64_t start_us; /* monotonic; all of it is constant after setup */
    int64_t start_wall_s;
    char replication_id[INFO_ID_SIZE + 1];
} started;

/* What this thread's INFO shows. */
static _Thread_local struct {
    struct server_stats *stats; /* NULL: none is being printed */
    struct mem_stats memory;
    size_t used, peak, resident;
    struct rusage self, children;
} now;

void info_rows_mark_ready(void)
{
    thread_assert_main();
    gate_assert_no_traffic();
    memory_report_mark_startup();
}

static void begin(void)
{
    static _Thread_local struct server_stats stats; /* not on the heap: used_memory is not to count it */

    assert(now.stats == NULL);
    stats_since_collect(&stats);
    now.stats = &stats;
    mem_stats(&now.memory);
    now.used = mem_used();
    now.peak = mem_peak();
    now.resident = mem_rss();
    getrusage(RUSAGE_SELF, &now.self);
    getrusage(RUSAGE_CHILDREN, &now.children);
}

const struct server_stats *info_rows_stats(void)
{
    assert(now.stats != NULL);
    return now.stats;
}

static void end(void)
{
    now.stats = NULL;
}

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

static void seconds(struct buffer *buffer, struct timeval time)
{
    buffer_printf(buffer, "%lld.%06lld", (long long)time.tv_sec, (long long)time.tv_usec);
}

/* Functions by the dozen that differ in an expression. */
#define PUT(name, ...)                            \
    static void put_##name(struct buffer *buffer) \
    {                                             \
        __VA_ARGS__;                              \
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
static void put_os(struct buffer *buffer)
{
    struct utsname name;

    if (uname(&name) == 0)
        buffer_printf(buffer, "%s %s %s", name.sysname, name.release, name.machine);
}
PUT_U64(arch_bits, 8 * sizeof(void *))
PUT_TEXT(monotonic_clock, "POSIX clock_gettime")
PUT_TEXT(multiplexing_api, now.stats->loop_name != NULL ? now.stats->loop_name : "epoll")
PUT_TEXT(atomicvar_api, "c11-builtin")
#ifdef __clang__
PUT_TEXT(gcc_version, "0.0.0")
#else
PUT(gcc_version, buffer_printf(buffer, "%d.%d.%d", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__))
#endif
PUT_I64(process_id, getpid())
PUT_TEXT(supervised, OPTION_GET(option_supervised) == SUPERVISED_SYSTEMD   ? "systemd"
                     : OPTION_GET(option_supervised) == SUPERVISED_UPSTART ? "upstart"
                                                                           : "no")
PUT_TEXT(run_id, info_run_id())
PUT_I64(tcp_port, OPTION_GET(option_port) != 0 ? OPTION_GET(option_port) : OPTION_GET(option_tls_port))
PUT_I64(time_us, clock_wall_us())
static uint64_t uptime_s(void)
{
    return (clock_monotonic_us() - started.start_us) / US_PER_SECOND;
}
PUT_U64(uptime_s, uptime_s())
PUT_U64(uptime_days, uptime_s() / SECONDS_PER_DAY)
PUT_I64(hz, now.stats->hz)
PUT_I64(configured_hz, OPTION_GET(option_hz))
PUT(availability_zone, availability_zone_append(buffer))
PUT_I64(lru_clock, (clock_wall_ms() / 1000) & 0xffffff)
PUT_TEXT(executable, config_executable_path())
PUT_TEXT(config_file, config_file_path())
PUT_I64(shutdown_in_ms, now.stats->shutdown_in_ms)
static bool is_shutting_down(void)
{
    return now.stats->shutdown_in_ms >= 0;
}

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
static void put_thread_clients(struct buffer *buffer)
{
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
static void put_dataset_percent(struct buffer *buffer)
{
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
static void put_available_memory(struct buffer *buffer)
{
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
PUT_STAT(unexpected_error_replies)
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
PUT_TEXT(replication_id, started.replication_id)
PUT_TEXT(second_replication_id, "0000000000000000000000000000000000000000")
PUT(migrate_links, buffer_append_u64(buffer, migrate_links_count()))
PUT(backlog_size, (void)config_get_text("repl-backlog-size", buffer))

/* cpu */
PUT(cpu_system, seconds(buffer, now.self.ru_stime))
PUT(cpu_user, seconds(buffer, now.self.ru_utime))
PUT(cpu_system_children, seconds(buffer, now.children.ru_stime))
PUT(cpu_user_children, seconds(buffer, now.children.ru_utime))
PUT_STAT(thread_count)
PUT_STAT(lock_waits)
PUT_STAT(parked_retries)
PUT_STAT(parked_by_gate)
PUT_STAT(parked_tries_most)

static struct timeval time_of_ticks(unsigned long ticks, unsigned long per_second)
{
    struct timeval time = {0};

    time.tv_sec = (time_t)(ticks / per_second);
    time.tv_usec = (long)(ticks % per_second * US_PER_SECOND / per_second);
    return time;
}

/* Times of the main thread, in ticks of the system's clock: the 14th and 15th word of its line in /proc. */
static bool main_thread_times(struct timeval *user, struct timeval *system)
{
    long per_second = sysconf(_SC_CLK_TCK);
    unsigned long user_ticks, system_ticks;
    char path[64], line[1024];
    const char *rest;
    FILE *file;
    size_t size;

    snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", (long)getpid());
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    size = fread(line, 1, sizeof(line) - 1, file);
    fclose(file);
    line[size] = '\0';
    rest = strrchr(line, ')'); /* the name in brackets may hold anything */
    if (rest == NULL || per_second <= 0 ||
        sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user_ticks, &system_ticks) != 2)
        return false;
    *user = time_of_ticks(user_ticks, (unsigned long)per_second);
    *system = time_of_ticks(system_ticks, (unsigned long)per_second);
    return true;
}

static void put_main_thread_times(struct buffer *buffer)
{
    struct timeval user, system;

    if (!main_thread_times(&user, &system))
        return;
    buffer_append_text(buffer, "used_cpu_sys_main_thread:");
    seconds(buffer, system);
    buffer_append_text(buffer, "\r\nused_cpu_user_main_thread:");
    seconds(buffer, user);
    buffer_append_text(buffer, "\r\n");
}

/* commandstats, errorstats, latencystats, keyspace */

/* The name of a field ends at a colon, and there is a command "host:". */
static void put_command_name(struct buffer *buffer, const char *what, struct slice name)
{
    buffer_append_text(buffer, what);
    for (size_t i = 0; i < name.size; i++)
        buffer_append_char(buffer, name.data[i] == ':' ? '_' : name.data[i]);
}

static void put_command_lines(struct buffer *buffer)
{
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

static void put_error_lines(struct buffer *buffer)
{
    struct error_lines *errors = mem_alloc_zero(sizeof(*errors));

    stats_since_errors(note_error, errors);
    for (size_t i = 0; i < errors->count; i++)
        buffer_printf(buffer, "errorstat_%s:count=%llu\r\n", errors->lines[i].code,
                      (unsigned long long)errors->lines[i].count);
    if (errors->overflow != 0)
        buffer_printf(buffer, "errorstat_%s:count=%llu\r\n", ERROR_CODE_OVERFLOW, (unsigned long long)errors->overflow);
    mem_free(errors);
}

static void put_latency_lines(struct buffer *buffer)
{
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

static void put_database_lines(struct buffer *buffer)
{
    for (unsigned db = 0; db < server_database_count(); db++) {
        struct keyspace_stats stats;

        server_keyspace_stats(db, &stats);
        if (stats.keys != 0)
            buffer_printf(buffer, "db%u:keys=%llu,expires=%llu,avg_ttl=%lld\r\n", db, (unsigned long long)stats.keys,
                          (unsigned long long)stats.expires, (long long)stats.average_ttl_ms);
    }
}

/* --- rows --- */

#define ROW(section_, name_, put)                                   \
    {                                                               \
        .section = (section_), .name = (name_), .append = put_##put \
    }
#define LINES(section_, put)                       \
    {                                              \
        .section = (section_), .append = put_##put \
    }

static const struct info_field server_rows[] = {
    ROW("server", "redis_version", redis_version),
    ROW("server", "keydb_version", keydb_version),
    ROW("server", "redis_git_sha1", git_sha1),
    ROW("server", "redis_git_dirty", git_dirty),
    ROW("server", "redis_build_id", build_id),
    ROW("server", "redis_mode", mode),
    ROW("server", "os", os),
    ROW("server", "arch_bits", arch_bits),
    ROW("server", "monotonic_clock", monotonic_clock),
    ROW("server", "multiplexing_api", multiplexing_api),
    ROW("server", "atomicvar_api", atomicvar_api),
    ROW("server", "gcc_version", gcc_version),
    ROW("server", "process_id", process_id),
    ROW("server", "process_supervised", supervised),
    ROW("server", "run_id", run_id),
    ROW("server", "tcp_port", tcp_port),
    ROW("server", "server_time_usec", time_us),
    ROW("server", "uptime_in_seconds", uptime_s),
    ROW("server", "uptime_in_days", uptime_days),
    ROW("server", "hz", hz),
    ROW("server", "configured_hz", configured_hz),
    ROW("server", "lru_clock", lru_clock),
    ROW("server", "executable", executable),
    ROW("server", "config_file", config_file),
    {.section = "server", .append = info_append_listeners},
    ROW("server", "io_threads_active", zero),
    ROW("server", "availability_zone", availability_zone),
    ROW("server", "features", nothing),
    {.section = "server", .name = "shutdown_in_milliseconds", .append = put_shutdown_in_ms, .wanted = is_shutting_down},

    ROW("clients", "connected_clients", connected_clients),
    ROW("clients", "cluster_connections", zero),
    ROW("clients", "maxclients", maxclients),
    ROW("clients", "client_recent_max_input_buffer", max_input_buffer_bytes),
    ROW("clients", "client_recent_max_output_buffer", max_output_buffer_bytes),
    ROW("clients", "blocked_clients", blocked_clients),
    ROW("clients", "tracking_clients", tracking_clients),
    ROW("clients", "pubsub_clients", pubsub_clients),
    ROW("clients", "watching_clients", watching_clients),
    ROW("clients", "clients_in_timeout_table", clients_in_timeout_table),
    ROW("clients", "current_client_thread", current_thread),
    LINES("clients", thread_clients),
    ROW("clients", "total_watched_keys", total_watched_keys),
    ROW("clients", "total_blocking_keys", total_blocking_keys),
    ROW("clients", "total_blocking_keys_on_nokey", total_blocking_keys_on_nokey),

    ROW("memory", "used_memory", used),
    ROW("memory", "used_memory_human", used_human),
    ROW("memory", "used_memory_rss", resident),
    ROW("memory", "used_memory_rss_human", resident_human),
    ROW("memory", "used_memory_peak", peak),
    ROW("memory", "used_memory_peak_human", peak_human),
    ROW("memory", "used_memory_peak_perc", peak_percent),
    ROW("memory", "used_memory_overhead", overhead),
    ROW("memory", "used_memory_startup", start_memory),
    ROW("memory", "used_memory_dataset", dataset),
    ROW("memory", "used_memory_dataset_perc", dataset_percent),
    ROW("memory", "allocator_allocated", allocated),
    ROW("memory", "allocator_active", active),
    ROW("memory", "allocator_resident", allocator_resident),
    ROW("memory", "allocator_muzzy", muzzy),
    ROW("memory", "total_system_memory", system_total),
    ROW("memory", "total_system_memory_human", system_total_human),
    ROW("memory", "used_memory_lua", vm_bytes),
    ROW("memory", "used_memory_vm_eval", vm_bytes),
    ROW("memory", "used_memory_lua_human", vm_human),
    ROW("memory", "used_memory_scripts_eval", scripts_bytes),
    ROW("memory", "number_of_cached_scripts", cached_scripts),
    ROW("memory", "number_of_functions", functions),
    ROW("memory", "number_of_libraries", libraries),
    ROW("memory", "used_memory_vm_functions", zero),
    ROW("memory", "used_memory_vm_total", vm_bytes),
    ROW("memory", "used_memory_vm_total_human", vm_human),
    ROW("memory", "used_memory_functions", functions_bytes),
    ROW("memory", "used_memory_scripts", all_scripts_bytes),
    ROW("memory", "used_memory_scripts_human", all_scripts_human),
    ROW("memory", "maxmemory", maxmemory),
    ROW("memory", "maxmemory_human", maxmemory_human),
    ROW("memory", "maxmemory_policy", maxmemory_policy),
    ROW("memory", "allocator_frag_ratio", fragmentation_ratio),
    ROW("memory", "allocator_frag_bytes", fragmentation_bytes),
    ROW("memory", "allocator_rss_ratio", allocator_rss_ratio),
    ROW("memory", "allocator_rss_bytes", allocator_rss_bytes),
    ROW("memory", "rss_overhead_ratio", rss_overhead_ratio),
    ROW("memory", "rss_overhead_bytes", rss_overhead_bytes),
    ROW("memory", "mem_fragmentation_ratio", mem_fragmentation_ratio),
    ROW("memory", "mem_fragmentation_bytes", mem_fragmentation_bytes),
    ROW("memory", "mem_not_counted_for_evict", not_counted),
    ROW("memory", "mem_replication_backlog", zero),
    ROW("memory", "mem_total_replication_buffers", zero),
    ROW("memory", "mem_clients_slaves", zero),
    ROW("memory", "mem_clients_normal", client_memory_bytes),
    ROW("memory", "mem_cluster_links", zero),
    ROW("memory", "mem_aof_buffer", mem_aof_buffer),
    ROW("memory", "mem_allocator", allocator_name),
    ROW("memory", "mem_overhead_db_hashtable_rehashing", zero),
    ROW("memory", "active_defrag_running", defrag_running),
    ROW("memory", "lazyfree_pending_objects", frees_pending),
    ROW("memory", "lazyfreed_objects", frees_done),
    ROW("memory", "storage_provider", storage_provider),
    ROW("memory", "available_system_memory", available_memory),

    ROW("persistence", "loading", loading),
    ROW("persistence", "async_loading", zero),
    ROW("persistence", "current_cow_peak", current_cow_peak),
    ROW("persistence", "current_cow_size", current_cow_size),
    ROW("persistence", "current_cow_size_age", current_cow_size_age),
    ROW("persistence", "current_fork_perc", current_fork_perc),
    ROW("persistence", "current_save_keys_processed", current_save_keys_processed),
    ROW("persistence", "current_save_keys_total", current_save_keys_total),
    ROW("persistence", "rdb_changes_since_last_save", rdb_changes_since_last_save),
    ROW("persistence", "rdb_bgsave_in_progress", rdb_bgsave_in_progress),
    ROW("persistence", "rdb_last_save_time", rdb_last_save_time),
    ROW("persistence", "rdb_last_bgsave_status", rdb_last_bgsave_status),
    ROW("persistence", "rdb_last_bgsave_time_sec", rdb_last_bgsave_time_sec),
    ROW("persistence", "rdb_current_bgsave_time_sec", rdb_current_bgsave_time_sec),
    ROW("persistence", "rdb_saves", rdb_saves),
    ROW("persistence", "rdb_last_cow_size", rdb_last_cow_size),
    ROW("persistence", "rdb_last_load_keys_expired", rdb_last_load_keys_expired),
    ROW("persistence", "rdb_last_load_keys_loaded", rdb_last_load_keys_loaded),
    ROW("persistence", "aof_enabled", aof_enabled),
    ROW("persistence", "aof_rewrite_in_progress", aof_rewrite_in_progress),
    ROW("persistence", "aof_rewrite_scheduled", aof_rewrite_scheduled),
    ROW("persistence", "aof_last_rewrite_time_sec", aof_last_rewrite_time_sec),
    ROW("persistence", "aof_current_rewrite_time_sec", aof_current_rewrite_time_sec),
    ROW("persistence", "aof_last_bgrewrite_status", aof_last_bgrewrite_status),
    ROW("persistence", "aof_rewrites", aof_rewrites),
    ROW("persistence", "aof_rewrites_consecutive_failures", aof_rewrites_consecutive_failures),
    ROW("persistence", "aof_last_write_status", aof_last_write_status),
    ROW("persistence", "aof_last_cow_size", aof_last_cow_size),
    ROW("persistence", "module_fork_in_progress", zero),
    ROW("persistence", "module_fork_last_cow_size", zero),
    {.section = "persistence", .append = put_aof_fields, .wanted = info_has_aof},
    {.section = "persistence", .append = put_loading_fields, .wanted = info_is_loading},

    ROW("stats", "total_connections_received", connections_received),
    ROW("stats", "total_commands_processed", commands_processed),
    ROW("stats", "instantaneous_ops_per_sec", ops_per_second),
    ROW("stats", "total_net_input_bytes", net_input_bytes),
    ROW("stats", "total_net_output_bytes", net_output_bytes),
    ROW("stats", "total_net_repl_input_bytes", zero),
    ROW("stats", "total_net_repl_output_bytes", zero),
    ROW("stats", "instantaneous_input_kbps", input_kbps),
    ROW("stats", "instantaneous_output_kbps", output_kbps),
    ROW("stats", "instantaneous_input_repl_kbps", zero_fraction),
    ROW("stats", "instantaneous_output_repl_kbps", zero_fraction),
    ROW("stats", "rejected_connections", rejected_connections),
    ROW("stats", "sync_full", zero),
    ROW("stats", "sync_partial_ok", zero),
    ROW("stats", "sync_partial_err", zero),
    ROW("stats", "expired_keys", expired_keys),
    ROW("stats", "expired_subkeys", expired_members),
    ROW("stats", "expired_stale_perc", zero_fraction),
    ROW("stats", "expired_time_cap_reached_count", expire_cuts),
    ROW("stats", "expire_cycle_cpu_milliseconds", expire_ms),
    ROW("stats", "rendezvous_count", rendezvous_count),
    ROW("stats", "rendezvous_last_usec", rendezvous_last_us),
    ROW("stats", "rendezvous_max_usec", rendezvous_most_us),
    ROW("stats", "evicted_keys", evicted_keys),
    ROW("stats", "evicted_clients", evicted_clients),
    ROW("stats", "evicted_scripts", evicted_scripts),
    ROW("stats", "total_eviction_exceeded_time", exceeded_total),
    ROW("stats", "current_eviction_exceeded_time", exceeded_current),
    ROW("stats", "keyspace_hits", keyspace_hits),
    ROW("stats", "keyspace_misses", keyspace_misses),
    ROW("stats", "pubsub_channels", pubsub_channels),
    ROW("stats", "pubsub_patterns", pubsub_patterns),
    ROW("stats", "pubsubshard_channels", pubsubshard_channels),
    ROW("stats", "latest_fork_usec", latest_fork_usec),
    ROW("stats", "total_forks", total_forks),
    ROW("stats", "migrate_cached_sockets", migrate_links),
    ROW("stats", "slave_expires_tracked_keys", zero),
    ROW("stats", "active_defrag_hits", defrag_hits),
    ROW("stats", "active_defrag_misses", defrag_misses),
    ROW("stats", "active_defrag_key_hits", defrag_key_hits),
    ROW("stats", "active_defrag_key_misses", defrag_key_misses),
    ROW("stats", "total_active_defrag_time", defrag_ms),
    ROW("stats", "current_active_defrag_time", defrag_current_ms),
    ROW("stats", "tracking_total_keys", tracking_keys),
    ROW("stats", "tracking_total_items", tracking_items),
    ROW("stats", "tracking_total_prefixes", tracking_prefixes),
    ROW("stats", "unexpected_error_replies", unexpected_error_replies),
    ROW("stats", "total_error_replies", error_replies),
    ROW("stats", "dump_payload_sanitizations", zero),
    ROW("stats", "total_reads_processed", reads_processed),
    ROW("stats", "total_writes_processed", writes_processed),
    ROW("stats", "instantaneous_lock_contention", waiting_commands),
    ROW("stats", "avg_lock_contention", average_waiting_commands),
    ROW("stats", "storage_provider_read_hits", zero),
    ROW("stats", "storage_provider_read_misses", zero),
    ROW("stats", "io_threaded_reads_processed", zero),
    ROW("stats", "io_threaded_writes_processed", zero),
    ROW("stats", "io_threaded_total_prefetch_batches", prefetches),
    ROW("stats", "io_threaded_total_prefetch_entries", prefetched_keys),
    ROW("stats", "client_query_buffer_limit_disconnections", query_buffer_limit_disconnections),
    ROW("stats", "client_output_buffer_limit_disconnections", output_buffer_limit_disconnections),
    ROW("stats", "reply_buffer_shrinks", zero),
    ROW("stats", "reply_buffer_expands", zero),
    ROW("stats", "eventloop_cycles", loop_turns),
    ROW("stats", "eventloop_duration_sum", loop_us),
    ROW("stats", "eventloop_duration_cmd_sum", command_us),
    ROW("stats", "instantaneous_eventloop_cycles_per_sec", turns_per_second),
    ROW("stats", "instantaneous_eventloop_duration_usec", turn_us),
    ROW("stats", "acl_access_denied_auth", acl_denied_auth),
    ROW("stats", "acl_access_denied_cmd", acl_denied_command),
    ROW("stats", "acl_access_denied_key", acl_denied_key),
    ROW("stats", "acl_access_denied_channel", acl_denied_channel),

    ROW("replication", "role", role),
    ROW("replication", "connected_slaves", zero),
    ROW("replication", "master_failover_state", failover_state),
    ROW("replication", "master_replid", replication_id),
    ROW("replication", "master_replid2", second_replication_id),
    ROW("replication", "master_repl_offset", zero),
    ROW("replication", "second_repl_offset", minus_one),
    ROW("replication", "repl_backlog_active", zero),
    ROW("replication", "repl_backlog_size", backlog_size),
    ROW("replication", "repl_backlog_first_byte_offset", zero),
    ROW("replication", "repl_backlog_histlen", zero),

    ROW("cpu", "used_cpu_sys", cpu_system),
    ROW("cpu", "used_cpu_user", cpu_user),
    ROW("cpu", "used_cpu_sys_children", cpu_system_children),
    ROW("cpu", "used_cpu_user_children", cpu_user_children),
    ROW("cpu", "server_threads", thread_count),
    ROW("cpu", "long_lock_waits", lock_waits),
    ROW("cpu", "parked_retries", parked_retries),
    ROW("cpu", "parked_by_gate", parked_by_gate),
    ROW("cpu", "parked_tries_most", parked_tries_most),
    LINES("cpu", main_thread_times),

    LINES("commandstats", command_lines),
    LINES("errorstats", error_lines),
    LINES("latencystats", latency_lines),
    ROW("cluster", "cluster_enabled", zero),
    LINES("keyspace", database_lines),

    ROW("debug", "eventloop_duration_aof_sum", aof_us),
    ROW("debug", "eventloop_duration_cron_sum", upkeep_us),
    ROW("debug", "eventloop_duration_max", turn_us_most),
    ROW("debug", "eventloop_cmd_per_cycle_max", turn_commands_most),
};

void info_rows_setup(void)
{
    thread_assert_main();
    gate_assert_no_traffic();
    assert(started.start_us == 0);
    started.start_us = clock_monotonic_us();
    started.start_wall_s = clock_wall_us() / US_PER_SECOND;
    memory_report_mark_startup();
    random_hex(started.replication_id, INFO_ID_SIZE);
    config_on_reset_stat(stats_since_reset);
    config_on_reset_stat(timing_reset);
    info_on_write(begin, end);
    info_add_rows(server_rows, countof(server_rows));
    info_add_rows(info_thread_rows, info_thread_row_count);
}
