/* The families of commands: one table of rows each, ended by a row without name. main.c gives them to
 * command_registry_setup. */
#pragma once

#include "server/command/command.h"

extern const struct command_row string_commands[];             /* string.c */
extern const struct command_row lcs_commands[];                /* lcs.c */
extern const struct command_row bitmap_commands[];             /* bitmap.c */
extern const struct command_row hyperloglog_commands[];        /* hyperloglog.c */
extern const struct command_row hash_commands[];               /* hash.c */
extern const struct command_row list_commands[];               /* list.c */
extern const struct command_row set_commands[];                /* set.c */
extern const struct command_row sorted_set_commands[];         /* sorted_set.c */
extern const struct command_row sorted_set_range_commands[];   /* sorted_set_range.c */
extern const struct command_row sorted_set_algebra_commands[]; /* sorted_set_algebra.c */
extern const struct command_row sorted_set_pop_commands[];     /* sorted_set_pop.c */
extern const struct command_row sort_commands[];               /* sort.c */
extern const struct command_row stream_commands[];             /* stream.c */
extern const struct command_row stream_read_commands[];        /* stream_read.c */
extern const struct command_row stream_group_commands[];       /* stream_group.c */
extern const struct command_row stream_info_commands[];        /* stream_info.c */
extern const struct command_row geo_commands[];                /* geo.c */
extern const struct command_row geo_search_commands[];         /* geo_search.c */
extern const struct command_row keys_commands[];               /* keys.c */
extern const struct command_row expire_commands[];             /* expire.c */
extern const struct command_row member_expiry_commands[];      /* member_expiry.c */
extern const struct command_row nested_commands[];             /* nested.c */
extern const struct command_row cron_commands[];               /* cron.c */
extern const struct command_row dump_commands[];               /* dump.c */
extern const struct command_row migrate_commands[];            /* migrate.c */
extern const struct command_row aof_commands[];                /* aof.c */
extern const struct command_row standalone_commands[];         /* standalone.c */
extern const struct command_row persist_commands[];            /* persist.c */
extern const struct command_row scan_commands[];               /* scan.c */
extern const struct command_row connection_commands[];         /* connection.c */
extern const struct command_row admin_commands[];              /* admin.c */
extern const struct command_row acl_commands[];                /* acl.c */
extern const struct command_row transaction_commands[];        /* transactions.c */
extern const struct command_row command_commands[];            /* command.c */
extern const struct command_row pubsub_commands[];             /* pubsub.c */
extern const struct command_row config_commands[];             /* config.c */
extern const struct command_row info_commands[];               /* info.c */
extern const struct command_row lolwut_commands[];             /* lolwut.c */
extern const struct command_row slowlog_commands[];            /* slowlog.c */
extern const struct command_row latency_commands[];            /* latency.c */
extern const struct command_row memory_commands[];             /* memory.c */
