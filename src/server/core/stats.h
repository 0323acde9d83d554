/* Statistics of the server for INFO: sums over the workers, computed on demand. worker.c has the functions; any thread
 * may call them. */
#pragma once

#include "base/compiler.h"
#include "store/counters.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STATS_THREADS_MOST = 64, ERROR_CODES_MOST = 128, ERROR_CODE_BYTES = 32, RECENT_SECONDS = 8 };

/* The name for errors whose own name does not fit the table. */
#define ERROR_CODE_OVERFLOW "ERRORSTATS_OVERFLOW"

/* Counters of a worker, since start or CONFIG RESETSTAT: a counter is one line here. The worker uses counter_add on
 * its worker_stats; server_stats has the sum over all workers under the same name. */
#define WORKER_COUNTERS(X)                                                                       \
    X(connections_received)                                                                      \
    X(rejected_connections)                                                                      \
    X(commands_processed)                                                                        \
    X(error_replies)                                                                             \
    X(lock_waits) /* commands that were parked */                                                \
    X(query_buffer_limit_disconnections)                                                         \
    X(output_buffer_limit_disconnections)                                                        \
    X(evicted_clients)                                                                           \
    X(net_input_bytes)                                                                           \
    X(net_output_bytes)                                                                          \
    X(reads_processed)  /* receive operations */                                                 \
    X(writes_processed) /* send operations */                                                    \
    X(loop_turns)                                                                                \
    X(expire_us)           /* time of the active expire cycle */                                 \
    X(expire_cuts)         /* number of active expire cycles that used their whole time slice */ \
    X(active_expired_keys) /* by that cycle */                                                   \
    X(active_expired_members)                                                                    \
    X(acl_denied_auth)                                                                           \
    X(acl_denied_command)                                                                        \
    X(acl_denied_key)                                                                            \
    X(acl_denied_channel)                                                                        \
    X(acl_denied_database)                                                                       \
    X(acl_denied_certificate) /* whose name is not that of a user who may connect */             \
    X(parked_retries)         /* attempts to run a parked command */                             \
    X(parked_by_gate)         /* parked commands with many stripes that took the gate instead */ \
    X(prefetches)             /* groups of commands whose keys were fetched ahead */             \
    X(prefetched_keys)

/* Likewise, but these are current values. */
#define WORKER_GAUGES(X)                                               \
    X(waiting_commands)         /* parked: for a stripe or the gate */ \
    X(clients_in_timeout_table) /* blocked with a timeout */

/* Counters in other places, since start or CONFIG RESETSTAT. */
#define OTHER_COUNTERS(X)                                                          \
    X(frees_done)     /* in the background */                                      \
    X(loop_us)        /* time of all turns */                                      \
    X(main_thread_us) /* the part of the main thread */                            \
    X(command_us)     /* the part for commands */                                  \
    X(aof_us)         /* the part for the append-only file */                      \
    X(upkeep_us)      /* the part for timers and other work at the end of turns */ \
    X(defrag_hits)                                                                 \
    X(defrag_misses)                                                               \
    X(defrag_key_hits)                                                             \
    X(defrag_key_misses)                                                           \
    X(defrag_us) /* time of defragmentation */

#define ALL_COUNTERS(X) \
    WORKER_COUNTERS(X)  \
    STORE_COUNTERS(X)   \
    OTHER_COUNTERS(X)

/* The counters that INFO keydb shows for each worker. */
#define THREAD_COUNTERS(X) \
    X(commands_processed)  \
    X(net_input_bytes)     \
    X(net_output_bytes)    \
    X(error_replies)       \
    X(lock_waits)          \
    X(loop_turns)          \
    X(reads_processed)     \
    X(writes_processed)

struct server_stats {
    /* clients */
    uint64_t connected_clients; /* without replicas and connections that this server opened */
    uint64_t blocked_clients;
    uint64_t tracking_clients;
    uint64_t pubsub_clients;
    uint64_t watching_clients;
    uint64_t total_watched_keys;
    uint64_t total_blocking_keys;
    uint64_t total_blocking_keys_on_nokey;
    uint64_t max_input_buffer_bytes; /* the largest of the last 8 s */
    uint64_t max_output_buffer_bytes;
    uint64_t client_memory_bytes; /* of all normal clients */

#define NUMBER(name) uint64_t name;
    ALL_COUNTERS(NUMBER)
    WORKER_GAUGES(NUMBER)
    uint64_t frees_pending;                    /* in the background */
    uint64_t parked_tries_most;                /* most attempts of one command with many stripes */
    uint64_t turn_us_most, turn_commands_most; /* the most in one turn of one worker */

    /* Per second, over about the last 1.6 s. */
    double ops_per_second;
    double input_kb_per_second;
    double output_kb_per_second;
    double turns_per_second;
    double turn_us; /* mean duration of a turn */
    double average_waiting_commands;

    /* threads */
    unsigned thread_count;
    unsigned current_thread; /* index of the calling worker; 0 in other threads */
    uint64_t thread_clients[STATS_THREADS_MOST];
    struct thread_stats { /* since start or CONFIG RESETSTAT */
        THREAD_COUNTERS(NUMBER)
    } threads[STATS_THREADS_MOST];
#undef NUMBER
    const char *loop_name; /* "epoll", "io_uring" */
    int64_t hz;            /* current background turns per second */
};
/* Adds a source: `fill` adds figures of one part of the server to the statistics. Before the workers start. */
void server_stats_add_source(void (*fill)(struct server_stats *stats));
void server_stats_collect(struct server_stats *stats); /* fills the whole struct */
void server_stats_forget_most(void);                   /* resets the largest figures of one turn */
/* Only the sums over the workers, since the start. Async-signal-safe: takes no lock and no memory. */
void server_stats_collect_sums(struct server_stats *stats);

/* Errors of one command, summed over the workers. Calls and times: timing.h. False: no errors. */
struct command_stats {
    uint64_t rejected_calls, failed_calls;
};
bool server_command_stats(uint32_t command_id, struct command_stats *stats);

/* Calls `visit` for each error code that has occurred ("ERR"), with its count. */
void server_error_stats(void (*visit)(void *context, const char *code, uint64_t count), void *context);

/* For one database: keys, keys with a deadline, and their mean time to live. */
struct keyspace_stats {
    uint64_t keys, expires;
    int64_t average_ttl_ms;
};
unsigned server_database_count(void);
void server_keyspace_stats(unsigned db, struct keyspace_stats *stats);
