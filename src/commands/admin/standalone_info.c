#include "commands/admin/standalone_info.h"

const struct info_row standalone_info[] = {
    INFO_TEXT("redis_mode", "standalone"), INFO_TEXT("server_mode", "standalone"), /* Valkey's name */
    INFO_TEXT("cluster_enabled", "0"),     INFO_TEXT("cluster_connections", "0"),
    INFO_TEXT("mem_cluster_links", "0"),   {0},
};
