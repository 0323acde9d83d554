/* The values of the options of replication. Numbers: any thread, OPTION_GET(option_repl_timeout). Strings: inside an
 * exclusive section (or before the workers start), or option_string_append. */
#pragma once

#include "base/rows.h"

/* --- of a master --- */
extern _Atomic int64_t option_repl_backlog_ttl;                /* global: option storage; seconds; 0: for ever */
extern _Atomic int64_t option_repl_diskless_sync;              /* global: option storage; bool */
extern _Atomic int64_t option_repl_diskless_sync_delay;        /* global: option storage; seconds */
extern _Atomic int64_t option_repl_diskless_sync_max_replicas; /* global: option storage; 0: no number */
extern _Atomic int64_t option_repl_ping_period;                /* global: option storage; seconds */
extern _Atomic int64_t option_repl_timeout;                    /* global: option storage; seconds; of both sides */
extern _Atomic int64_t option_repl_disable_tcp_nodelay;        /* global: option storage; bool */
extern _Atomic int64_t option_repl_backpressure_limit;         /* global: option storage; bytes; 0: off */
extern _Atomic int64_t option_min_replicas_to_write;           /* global: option storage; 0: off */
extern _Atomic int64_t option_min_replicas_max_lag;            /* global: option storage; seconds; 0: off */
extern _Atomic int64_t option_shutdown_timeout;                /* global: option storage; seconds; 0: does not wait */

/* --- of a replica --- */
extern struct option_string option_masterauth; /* global: option storage; NULL: none */
extern struct option_string option_masteruser; /* global: option storage; NULL: none */
extern _Atomic int64_t option_tls_replication; /* global: option storage; bool */
enum diskless_load {
    DISKLESS_LOAD_DISABLED,
    DISKLESS_LOAD_ON_EMPTY_DB,
    DISKLESS_LOAD_SWAPDB,
    DISKLESS_LOAD_FLUSHDB /* always, after the old data is gone */
};
extern _Atomic int64_t option_repl_diskless_load;       /* global: option storage; enum diskless_load */
extern _Atomic int64_t option_replica_read_only;        /* global: option storage; bool */
extern _Atomic int64_t option_replica_serve_stale_data; /* global: option storage; bool */
extern _Atomic int64_t option_replica_lazy_flush;       /* global: option storage; bool */
extern _Atomic int64_t option_replica_ignore_maxmemory; /* global: option storage; bool */
extern _Atomic int64_t option_replica_priority;         /* global: option storage; 0: never promoted */
extern _Atomic int64_t option_replica_announced;        /* global: option storage; bool */
extern struct option_string option_replica_announce_ip; /* global: option storage; NULL: none */
extern _Atomic int64_t option_replica_announce_port;    /* global: option storage; 0: that of the listener */
enum propagation_error { PROPAGATION_IGNORE, PROPAGATION_PANIC, PROPAGATION_PANIC_ON_REPLICAS };
extern _Atomic int64_t option_propagation_error_behavior; /* global: option storage; enum propagation_error */

void replication_options_setup(void); /* main thread, after config_setup: adds the options */
