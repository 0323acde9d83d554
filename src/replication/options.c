#include "replication/options.h"

#include "base/thread.h"
#include "server/config/config.h"

_Atomic int64_t option_repl_backlog_ttl;                /* global: option storage */
_Atomic int64_t option_repl_diskless_sync;              /* global: option storage */
_Atomic int64_t option_repl_diskless_sync_delay;        /* global: option storage */
_Atomic int64_t option_repl_diskless_sync_max_replicas; /* global: option storage */
_Atomic int64_t option_repl_ping_period;                /* global: option storage */
_Atomic int64_t option_repl_timeout;                    /* global: option storage */
_Atomic int64_t option_repl_disable_tcp_nodelay;        /* global: option storage */
_Atomic int64_t option_repl_backpressure_limit;         /* global: option storage */
_Atomic int64_t option_min_replicas_to_write;           /* global: option storage */
_Atomic int64_t option_min_replicas_max_lag;            /* global: option storage */
_Atomic int64_t option_shutdown_timeout;                /* global: option storage */
struct option_string option_masterauth;                 /* global: option storage */
struct option_string option_masteruser;                 /* global: option storage */
_Atomic int64_t option_tls_replication;                 /* global: option storage */
_Atomic int64_t option_repl_diskless_load;              /* global: option storage */
_Atomic int64_t option_replica_read_only;               /* global: option storage */
_Atomic int64_t option_replica_serve_stale_data;        /* global: option storage */
_Atomic int64_t option_replica_lazy_flush;              /* global: option storage */
_Atomic int64_t option_replica_ignore_maxmemory;        /* global: option storage */
_Atomic int64_t option_replica_priority;                /* global: option storage */
_Atomic int64_t option_replica_announced;               /* global: option storage */
struct option_string option_replica_announce_ip;        /* global: option storage */
_Atomic int64_t option_replica_announce_port;           /* global: option storage */
_Atomic int64_t option_propagation_error_behavior;      /* global: option storage */

/* clang-format off */
static const struct option_enum diskless_loads[] = {
    {"disabled", DISKLESS_LOAD_DISABLED}, {"on-empty-db", DISKLESS_LOAD_ON_EMPTY_DB},
    {"swapdb", DISKLESS_LOAD_SWAPDB}, {"flushdb", DISKLESS_LOAD_FLUSHDB},
    {"flush-before-load", DISKLESS_LOAD_FLUSHDB}, {NULL, 0},
};
static const struct option_enum propagation_errors[] = {
    {"ignore", PROPAGATION_IGNORE}, {"panic", PROPAGATION_PANIC},
    {"panic-on-replicas", PROPAGATION_PANIC_ON_REPLICAS}, {NULL, 0},
};
/* clang-format on */

static const struct option_row rows[] = {
    ROW_INT("repl-backlog-ttl", &option_repl_backlog_ttl, 3600, 0, INT64_MAX, OPTION_MUTABLE,
            "Seconds after the last replica has left until its stream is no longer kept; 0: for ever."),
    ROW_BOOL("repl-diskless-sync", &option_repl_diskless_sync, 1, OPTION_MUTABLE,
             "Send snapshots to replicas without a file."),
    ROW_INT("repl-diskless-sync-delay", &option_repl_diskless_sync_delay, 5, 0, INT32_MAX, OPTION_MUTABLE,
            "Seconds to wait for more replicas before a snapshot without a file."),
    ROW_INT("repl-diskless-sync-max-replicas", &option_repl_diskless_sync_max_replicas, 0, 0, INT32_MAX, OPTION_MUTABLE,
            "Number of waiting replicas that ends that delay; 0: none."),
    ROW_INT("repl-ping-replica-period", &option_repl_ping_period, 10, 1, INT32_MAX, OPTION_MUTABLE,
            "Seconds between two PINGs to replicas.", .alias = "repl-ping-slave-period"),
    ROW_INT("repl-timeout", &option_repl_timeout, 60, 1, INT32_MAX, OPTION_MUTABLE,
            "Seconds of silence after which a link between master and replica ends."),
    ROW_BOOL("repl-disable-tcp-nodelay", &option_repl_disable_tcp_nodelay, 0, OPTION_MUTABLE,
             "Let the system collect small packets for replicas."),
    ROW_MEMORY(
        "repl-backpressure-limit", &option_repl_backpressure_limit, 0, 0, INT64_MAX, OPTION_MUTABLE,
        "Bytes by which an online replica may lag before writes are paused, at most for repl-timeout; 0: never."),
    ROW_INT("min-replicas-to-write", &option_min_replicas_to_write, 0, 0, INT32_MAX, OPTION_MUTABLE,
            "Number of good replicas without which writes are refused; 0: off.", .alias = "min-slaves-to-write"),
    ROW_INT("min-replicas-max-lag", &option_min_replicas_max_lag, 10, 0, INT32_MAX, OPTION_MUTABLE,
            "Seconds since the last sign of life of a good replica; 0: off.", .alias = "min-slaves-max-lag"),
    ROW_INT("shutdown-timeout", &option_shutdown_timeout, 10, 0, INT32_MAX, OPTION_MUTABLE,
            "Seconds that a shutdown waits for replicas; 0: it does not wait."),
    ROW_STRING("masterauth", &option_masterauth, NULL, OPTION_MUTABLE | OPTION_SENSITIVE | OPTION_EMPTY_IS_NULL,
               "The password for the master.", .alias = "primaryauth"),
    ROW_STRING("masteruser", &option_masteruser, NULL, OPTION_MUTABLE | OPTION_SENSITIVE | OPTION_EMPTY_IS_NULL,
               "The user for the master.", .alias = "primaryuser"),
    ROW_BOOL("tls-replication", &option_tls_replication, 0, OPTION_MUTABLE, "Connect to the master with TLS."),
    ROW_ENUM("repl-diskless-load", &option_repl_diskless_load, DISKLESS_LOAD_DISABLED, diskless_loads, OPTION_MUTABLE,
             "When a replica loads a snapshot without a file."),
    ROW_BOOL("replica-read-only", &option_replica_read_only, 1, OPTION_MUTABLE, "Clients of a replica may not write.",
             .alias = "slave-read-only"),
    ROW_BOOL("replica-serve-stale-data", &option_replica_serve_stale_data, 1, OPTION_MUTABLE,
             "A replica without its master answers from the data that it has.", .alias = "slave-serve-stale-data"),
    ROW_BOOL("replica-lazy-flush", &option_replica_lazy_flush, 0, OPTION_MUTABLE,
             "Free the old data in the background before a snapshot is loaded.", .alias = "slave-lazy-flush"),
    ROW_BOOL("replica-ignore-maxmemory", &option_replica_ignore_maxmemory, 1, OPTION_MUTABLE,
             "A replica evicts nothing by itself.", .alias = "slave-ignore-maxmemory"),
    ROW_INT("replica-priority", &option_replica_priority, 100, 0, INT32_MAX, OPTION_MUTABLE,
            "Sentinels prefer the lowest; 0: never a master.", .alias = "slave-priority"),
    ROW_BOOL("replica-announced", &option_replica_announced, 1, OPTION_MUTABLE, "Sentinels list this replica."),
    ROW_STRING("replica-announce-ip", &option_replica_announce_ip, NULL, OPTION_MUTABLE | OPTION_EMPTY_IS_NULL,
               "The address that this replica tells its master.", .alias = "slave-announce-ip"),
    ROW_INT("replica-announce-port", &option_replica_announce_port, 0, 0, 65535, OPTION_MUTABLE,
            "The port that this replica tells its master; 0: its own.", .alias = "slave-announce-port"),
    ROW_ENUM("propagation-error-behavior", &option_propagation_error_behavior, PROPAGATION_IGNORE, propagation_errors,
             OPTION_MUTABLE, "What happens if a command of the stream fails."),
};

void replication_options_setup(void)
{
    thread_assert_main();
    config_add_rows(rows, countof(rows));
}
