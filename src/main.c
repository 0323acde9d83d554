/* keydb-server: puts the parts together in one visible list and takes them down in reverse. */
#include "active/active_info.h"
#include "active/compare.h"
#include "active/links.h"
#include "active/node.h"
#include "active/node_files.h"
#include "active/options.h"
#include "active/peers.h"
#include "active/readiness.h"
#include "active/sender.h"
#include "active/snapshot.h"
#include "active/window_cycle.h"
#include "base/background.h"
#include "base/fence.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "commands/admin/standalone_info.h"
#include "commands/debug/debug.h"
#include "commands/shared/families.h"
#include "commands/shared/random_count.h"
#include "commands/shared/type_options.h"
#include "metrics/metrics.h"
#include "persist/types.h"
#include "replication/backlog.h"
#include "replication/failover.h"
#include "replication/farewell.h"
#include "replication/followers.h"
#include "replication/full_sync.h"
#include "replication/history.h"
#include "replication/local_keys.h"
#include "replication/master.h"
#include "replication/master_link.h"
#include "replication/options.h"
#include "replication/replica_link.h"
#include "replication/replicas.h"
#include "replication/replication_info.h"
#include "replication/role_rules.h"
#include "replication/wait.h"
#include "script/script_host.h"
#include "script/script_info.h"
#include "script/scripts.h"
#include "server/acl/acl.h"
#include "server/acl/acl_client.h"
#include "server/acl/acl_declared.h"
#include "server/acl/acl_options.h"
#include "server/command/command.h"
#include "server/config/config.h"
#include "server/config/config_info.h"
#include "server/config/options.h"
#include "server/core/deferred_log.h"
#include "server/core/lifecycle.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/core/stats_info.h"
#include "server/core/stats_since.h"
#include "server/diagnose/crash.h"
#include "server/diagnose/watchdog.h"
#include "server/durable/aof.h"
#include "server/durable/aof_hold.h"
#include "server/durable/aof_lock.h"
#include "server/durable/child.h"
#include "server/durable/durable_info.h"
#include "server/durable/file_options.h"
#include "server/durable/loading.h"
#include "server/durable/persistence.h"
#include "server/memory/client_limit.h"
#include "server/memory/memory_info.h"
#include "server/memory/memory_limit.h"
#include "server/memory/memory_report.h"
#include "server/observe/absent_info.h"
#include "server/observe/command_log.h"
#include "server/observe/commands_info.h"
#include "server/observe/hotkeys.h"
#include "server/observe/info.h"
#include "server/observe/timing.h"
#include "server/process/availability_zone.h"
#include "server/process/banner.h"
#include "server/process/identity.h"
#include "server/process/process.h"
#include "server/process/process_info.h"
#include "server/process/process_title.h"
#include "server/process/reaper.h"
#include "server/pubsub/broadcast.h"
#include "server/pubsub/events.h"
#include "server/pubsub/monitor.h"
#include "server/pubsub/pubsub.h"
#include "server/pubsub/topics.h"
#include "server/pubsub/tracking.h"
#include "server/pubsub/tracking_table.h"
#include "server/run/accept.h"
#include "server/run/apply.h"
#include "server/run/blocked.h"
#include "server/run/crew.h"
#include "server/run/dispatch.h"
#include "server/run/large_bulk.h"
#include "server/run/listeners.h"
#include "server/run/listeners_info.h"
#include "server/run/migrate.h"
#include "server/run/migrate_link.h"
#include "server/run/parking.h"
#include "server/run/pause.h"
#include "server/run/placement.h"
#include "server/run/rendezvous.h"
#include "server/run/standstill.h"
#include "server/run/wake_later.h"
#include "server/tls/certificates.h"
#include "server/tls/tls_peers.h"
#include "server/upkeep/active_expiry.h"
#include "server/upkeep/cron_runner.h"
#include "server/upkeep/defrag_cycle.h"
#include "server/upkeep/import_mode.h"
#include "server/upkeep/journal_limits.h"
#include "server/upkeep/shutdown.h"
#include "server/upkeep/shutdown_wait.h"
#include "server/upkeep/size_cycle.h"
#include "server/upkeep/slot_cycle.h"
#include "server/upkeep/soft_shutdown.h"

#include <stdlib.h>
#include <unistd.h>

#define LIST_COMMAND_TABLE(table) table,

static void commands_setup(void)
{
    static const struct command_row *const tables[] = {script_commands, function_commands,
                                                       EVERY_COMMAND_TABLE(LIST_COMMAND_TABLE)};

    command_registry_setup(tables, countof(tables));
    config_on_directive(&command_rename_directive);
    config_on_directive(&acl_user_directive);
}

/* The order of their fields in INFO: server/observe/info_order.c. */
static void fields_setup(void)
{
    static const struct info_row *const tables[] = {
        config_info,        process_info,    availability_zone_info,
        stats_info,         commands_info,   absent_info,
        certificates_info,  topics_info,     tracking_table_info,
        acl_client_info,    durable_info,    memory_info,
        client_limit_info,  dispatch_info,   parking_info,
        rendezvous_info,    pause_info,      command_log_info,
        migrate_link_info,  listeners_info,  active_expiry_info,
        defrag_cycle_info,  standalone_info, replication_info,
        shutdown_wait_info, script_info,     active_info,
        size_cycle_info,    hotkeys_info,
    };

    info_setup(tables, countof(tables));
}

/* The order is that in which they are called, and the reverse where they end. */
static void lifecycles_setup(void)
{
    static const struct lifecycle *const parts[] = {
        &replicas_lifecycle,      &replica_link_lifecycle,  &followers_lifecycle,
        &full_sync_lifecycle,     &deferred_log_lifecycle,  &timing_lifecycle,
        &memory_limit_lifecycle,  &client_limit_lifecycle,  &events_lifecycle,
        &tracking_lifecycle,      &broadcast_lifecycle,     &accept_lifecycle,
        &tls_peers_lifecycle,     &acl_client_lifecycle,    &journal_limits_lifecycle,
        &certificates_lifecycle,  &dispatch_lifecycle,      &placement_lifecycle,
        &blocked_lifecycle,       &aof_hold_lifecycle,      &monitor_lifecycle,
        &pubsub_lifecycle,        &shutdown_lifecycle,      &persistence_lifecycle,
        &aof_lifecycle,           &rendezvous_lifecycle,    &pause_lifecycle,
        &parking_lifecycle,       &cron_runner_lifecycle,   &migrate_lifecycle,
        &large_bulk_lifecycle,    &defrag_cycle_lifecycle,  &soft_shutdown_lifecycle,
        &loading_lifecycle,       &active_expiry_lifecycle, &listeners_lifecycle,
        &standstill_lifecycle,    &backlog_lifecycle,       &crew_lifecycle,
        &peers_lifecycle,         &readiness_lifecycle,     &master_lifecycle,
        &master_link_lifecycle,   &role_rules_lifecycle,    &replication_info_lifecycle,
        &wait_lifecycle,          &local_keys_lifecycle,    &failover_lifecycle,
        &shutdown_wait_lifecycle, &slot_cycle_lifecycle,    &node_lifecycle,
        &links_lifecycle,         &snapshot_lifecycle,      &snapshot_load_lifecycle,
        &window_cycle_lifecycle,  &sender_lifecycle,        &compare_lifecycle,
        &metrics_lifecycle,       &wake_later_lifecycle,    &import_mode_lifecycle,
        &size_cycle_lifecycle,    &hotkeys_lifecycle,
    };

    for (size_t i = 0; i < countof(parts); i++)
        lifecycle_add(parts[i]);
}

/* Their options and hooks: all that does not need the configuration yet. */
static void parts_setup(void)
{
    config_setup();
    stats_since_setup();
    timing_setup();
    hotkeys_setup();
    memory_limit_setup();
    defrag_cycle_setup();
    client_limit_setup();
    events_setup();
    tracking_setup();
    soft_shutdown_setup();
    shutdown_setup();
    active_expiry_setup();
    availability_zone_setup();
    import_mode_setup();
    certificates_setup();
    tls_peers_setup();
    scripts_setup_options();
    topics_setup();
    type_options_setup();
    random_count_setup();
    acl_options_setup();
    file_options_setup();
    aof_setup();
    journal_limits_setup();
    replication_options_setup();
    active_options_setup();
    peers_setup();
    links_setup();
    replicas_setup();
    master_setup();
    replication_info_setup();
    farewell_setup();
    metrics_setup();
    persistence_setup(type_rdb_limits);
    lifecycles_setup();
}

static void say_hello(const struct server *server, bool has_settings)
{
    log_warning("oO0OoO0OoO0Oo KeyDB is starting oO0OoO0OoO0Oo");
    log_warning("KeyDB version=%s, bits=%d, commit=%s, modified=%d, pid=%d, just started", KEYDB_VERSION,
                (int)sizeof(void *) * 8, KEYDB_GIT_SHA1, KEYDB_GIT_DIRTY, (int)getpid());
    if (has_settings)
        log_warning("Configuration loaded");
    else
        log_warning("Warning: no config file specified, using the default config. In order to specify a config file "
                    "use %s /path/to/keydb.conf",
                    config_executable_path());
    config_log_remarks();
    banner_write();
    log_notice("%u threads, event loop %s, allocator %s", server->worker_count, loop_kind_name(server->workers[0].loop),
               mem_allocator_name());
    log_warning("Server initialized");
}

/* Before that it answers, but may yet find that the data cannot be read. */
static void begin_service(void)
{
    node_begin();
    node_files_begin();
    aof_begin();
    if (!atomic_load_explicit(&server_instance()->stopping, memory_order_relaxed))
        log_notice("Ready to accept connections");
}

/* For the lines of the log: any thread, also a signal handler. */
static char role_letter(void)
{
    return role_follows() ? 'S' : 'M';
}

int main(int argc, char **argv)
{
    static const struct process_signals signals = {.stop = shutdown_on_signal, .wake = server_wake_from_signal};
    struct server *server;
    int exit_status = 0;

    identity_setup();
    fence_setup();
    hash_setup();
    mem_thread_start();
    argv = process_title_setup(argc, argv);
    parts_setup();
    commands_setup();
    fields_setup();
    acl_setup();
    if (!config_load(argc, argv, &exit_status))
        goto out_config;
    availability_zone_start();
    process_on_signals(&signals);
    process_setup(role_letter); /* log, daemon, signals */
    crash_setup();
    process_bio_begin();
    background_setup(1);
    process_bio_end();
    server = acl_start() ? server_create() : NULL;
    if (server == NULL) {
        exit_status = EXIT_FAILURE;
        goto out;
    }
    types_setup(server->store);
    history_setup(&server->journal);
    memory_report_mark_startup();
    scripts_setup();
    reaper_setup();
    loading_on_end(script_host_leave);
    loading_on_flush(tracking_note_flush);
    aof_load_provide(&apply_functions);
    node_files_setup();
    watchdog_setup(server);
    say_hello(server, argc > 1);
    loading_on_loaded(begin_service);
    if (loading_start(server)) {
        process_ready();
        server_run(server);
    } else {
        exit_status = EXIT_FAILURE;
    }
    metrics_stop();
    loading_join();
    aof_stop();
    migrate_stop();
    child_teardown();
    debug_teardown();   /* a DEBUG HOLD is a job of the background thread */
    background_drain(); /* what a child has rewritten is put in place under the lock */
    aof_lock_leave();   /* a child that was still rewriting the file had it, too */
    reaper_teardown();
    log_warning("%s is now ready to exit, bye bye...", "KeyDB");
    process_stopping();
    watchdog_stop();
    server_destroy(&server);
    migrate_teardown();
    scripts_teardown();
    watchdog_teardown();
out:
    background_teardown();
    crash_teardown();
    process_teardown();
out_config:
    acl_declared_teardown();
    acl_teardown();
    command_registry_teardown();
    node_files_teardown();
    persistence_teardown();
    topics_teardown();
    tls_peers_teardown();
    certificates_teardown();
    timing_teardown();
    stats_since_teardown();
    config_teardown();
    process_title_teardown();
    mem_thread_stop();
    return exit_status;
}
