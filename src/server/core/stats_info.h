/* Fields of INFO about clients, commands and workers; and INFO_STAT, by which all parts show what is counted. */
#pragma once

#include "base/info_row.h"
#include "server/core/stats.h"

extern const struct info_source server_stats_source; /* its pictures are struct server_stats, since CONFIG RESETSTAT */

/* A member of struct server_stats; the same in other forms. */
#define INFO_STAT(name_, member_, ...) \
    INFO_FIELD(name_, &server_stats_source, struct server_stats, member_, ##__VA_ARGS__)
#define INFO_STAT_MS(name_, member_) INFO_MS(name_, &server_stats_source, struct server_stats, member_)
#define INFO_STAT_ROUNDED(name_, member_) INFO_ROUNDED(name_, &server_stats_source, struct server_stats, member_)

extern const struct info_row stats_info[];
