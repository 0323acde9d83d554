/* Statistics of the server for INFO: sums over the workers, computed on demand. worker.c has the functions; any thread
 * may call them. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STATS_THREADS_MOST = 64, ERROR_CODES_MOST = 128, ERROR_CODE_BYTES = 32, RECENT_SECONDS = 8 };

/* The name for errors whose own name does not fit the table. */
#define ERROR_CODE_OVERFLOW "ERRORSTATS_OVERFLOW"

struct server_stats {
    /* clients */
    uint64_t connected_clients; /* without replicas and connections that this server opened */
    uint64_t blocked_clients;
    uint64_t tracking_clients;
    uint64_t pubsub_clients;
    uint64_t watching_clients;
    uint64_t clients_in_timeout_table;
    uint64_t total_watched_keys;
    uint64_t total_blocking_keys;
    uint64_t total_blocking_keys_on_nokey;
    uint64_t max_input_buffer_bytes; /* the largest of the last 8 s */
    uint64_t max_output_buffer_bytes;
    uint64_t client_memory_bytes; /* of all normal clients */

    /* since start or CONFIG RESETSTAT */
    uint64_t connections_received;
    uint64_t rejected_connections;
    uint64_t commands_processed;
    uint64_t net_input_bytes;
    uint64_t net_output_bytes;
    uint64_t reads_processed;  /* receive operations */
    uint64_t writes_processed; /* send operations */
    uint64_t error_replies;
    uint64_t unexpected_error_replies;
    uint64_t expired_keys, expired_members;
    uint64_t evicted_keys;
    uint64_t evicted_clients;
    uint64_t frees_done, frees_pending; /* in the background */
    uint64_t keyspace_hits;
    uint64_t keyspace_misses;
    uint64_t dirty; /* changes of keys */
    uint64_t query_buffer_limit_disconnections;
    uint64_t output_buffer_limit_disconnections;
    uint64_t acl_denied_auth, acl_denied_command, acl_denied_key, acl_denied_channel;
    uint64_t lock_waits;                  /* number of parked commands */
    uint64_t parked_retries;              /* attempts to run a parked command */
    uint64_t parked_by_gate;              /* parked commands with many stripes that took the gate instead */
    uint64_t parked_tries_most;           /* most attempts of one command with many stripes */
    uint64_t prefetches, prefetched_keys; /* of commands that ran as a group */
    uint64_t loop_turns;
    /* Time of all turns; the part for commands; for the append-only file; for timers and other work at the end of
     * turns. */
    uint64_t loop_us, command_us, aof_us, upkeep_us;
    uint64_t turn_us_most, turn_commands_most; /* the most in one turn of one worker */
    uint64_t defrag_hits, defrag_misses, defrag_key_hits, defrag_key_misses;
    uint64_t defrag_us;   /* time of defragmentation */
    uint64_t expire_us;   /* time of the active expire cycle */
    uint64_t expire_cuts; /* number of active expire cycles that used their whole time slice */

    /* Per second, over about the last 1.6 s. */
    double ops_per_second;
    double input_kb_per_second;
    double output_kb_per_second;
    double turns_per_second;
    double turn_us; /* mean duration of a turn */
    double average_waiting_commands;
    uint64_t waiting_commands; /* parked now: for a stripe or the gate */

    /* threads */
    unsigned thread_count;
    unsigned current_thread; /* index of the calling worker; 0 in other threads */
    uint64_t thread_clients[STATS_THREADS_MOST];
    struct thread_stats { /* since start or CONFIG RESETSTAT */
        uint64_t commands, net_input_bytes, net_output_bytes, errors, lock_waits, loop_turns;
    } threads[STATS_THREADS_MOST];
    const char *loop_name; /* "epoll", "io_uring" */
    int64_t hz;            /* current background turns per second */

    bool loading;
    int64_t shutdown_in_ms; /* -1: not shutting down */
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
