/* The families of commands: tables of rows, each ended by a row without name. main.c gives all of them to
 * command_registry_setup. A file's table is named as the file; to add a table, add a line. */
#pragma once

#include "server/command/command.h"

#define EVERY_COMMAND_TABLE(DO)                   \
    DO(string_commands)                           \
    DO(increx_commands)                           \
    DO(lcs_commands)                              \
    DO(bitmap_commands)                           \
    DO(hyperloglog_commands)                      \
    DO(hash_commands)                             \
    DO(hash_ex_commands)                          \
    DO(list_commands)                             \
    DO(set_commands)                              \
    DO(keys_commands)                             \
    DO(expire_commands)                           \
    DO(scan_commands)                             \
    DO(connection_commands)                       \
    DO(transaction_commands) /* transactions.c */ \
    DO(admin_commands)                            \
    DO(command_commands)                          \
    DO(config_commands)                           \
    DO(info_commands)                             \
    DO(lolwut_commands)                           \
    DO(command_log_commands)                      \
    DO(hotkeys_commands)                          \
    DO(latency_commands)                          \
    DO(memory_commands)                           \
    DO(member_expiry_commands)                    \
    DO(nested_commands)                           \
    DO(cron_commands)                             \
    DO(dump_commands)                             \
    DO(migrate_commands)                          \
    DO(persist_commands)                          \
    DO(aof_commands)                              \
    DO(standalone_commands)                       \
    DO(replication_master_commands)               \
    DO(replication_replica_commands)              \
    DO(replication_commands)                      \
    DO(active_commands)                           \
    DO(debug_replay_commands)                     \
    DO(sorted_set_commands)                       \
    DO(sorted_set_range_commands)                 \
    DO(sorted_set_algebra_commands)               \
    DO(sorted_set_pop_commands)                   \
    DO(pubsub_commands)                           \
    DO(sort_commands)                             \
    DO(stream_commands)                           \
    DO(stream_read_commands)                      \
    DO(stream_group_commands)                     \
    DO(stream_reference_commands)                 \
    DO(stream_nack_commands)                      \
    DO(stream_info_commands)                      \
    DO(stream_producers_commands)                 \
    DO(geo_commands)                              \
    DO(geo_search_commands)                       \
    DO(acl_commands)

#define DECLARE_COMMAND_TABLE(table) extern const struct command_row table[];
EVERY_COMMAND_TABLE(DECLARE_COMMAND_TABLE)
