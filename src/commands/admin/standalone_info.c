#include "commands/admin/standalone_info.h"

#include "server/process/identity.h"

const struct info_row standalone_info[] = {
    INFO_TEXT("redis_mode", "standalone"),
    INFO_TEXT("cluster_enabled", "0"),
    INFO_TEXT("cluster_connections", "0"),
    INFO_TEXT("mem_cluster_links", "0"),

    INFO_TEXT("role", "master"),
    INFO_TEXT("connected_slaves", "0"),
    INFO_TEXT("master_failover_state", "no-failover"),
    INFO_CALL_TEXT("master_replid", identity_replication_id),
    INFO_TEXT("master_replid2", "0000000000000000000000000000000000000000"),
    INFO_TEXT("master_repl_offset", "0"),
    INFO_TEXT("second_repl_offset", "-1"),
    INFO_TEXT("repl_backlog_active", "0"),
    INFO_TEXT("repl_backlog_first_byte_offset", "0"),
    INFO_TEXT("repl_backlog_histlen", "0"),
    INFO_TEXT("mem_replication_backlog", "0"),
    INFO_TEXT("mem_total_replication_buffers", "0"),
    INFO_TEXT("mem_clients_slaves", "0"),
    INFO_TEXT("total_net_repl_input_bytes", "0"),
    INFO_TEXT("total_net_repl_output_bytes", "0"),
    INFO_TEXT("instantaneous_input_repl_kbps", "0.00"),
    INFO_TEXT("instantaneous_output_repl_kbps", "0.00"),
    INFO_TEXT("sync_full", "0"),
    INFO_TEXT("sync_partial_ok", "0"),
    INFO_TEXT("sync_partial_err", "0"),
    INFO_TEXT("slave_expires_tracked_keys", "0"),
    {0},
};
