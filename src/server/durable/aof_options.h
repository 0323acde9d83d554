/* Options of the append only file. Numbers: any thread; strings: see options.h. */
#pragma once

#include "base/rows.h"

enum aof_sync { AOF_SYNC_EVERY_SECOND, AOF_SYNC_ALWAYS, AOF_SYNC_NEVER };

extern _Atomic int64_t option_appendonly;                    /* global: option storage; bool */
extern _Atomic int64_t option_appendfsync;                   /* global: option storage; enum aof_sync */
extern _Atomic int64_t option_aof_load_truncated;            /* global: option storage; bool */
extern _Atomic int64_t option_aof_use_rdb_preamble;          /* global: option storage; bool */
extern _Atomic int64_t option_aof_timestamps;                /* global: option storage; bool */
extern _Atomic int64_t option_aof_rewrite_writes_back;       /* global: option storage; bool */
extern _Atomic int64_t option_aof_keeps_history;             /* global: option storage; bool */
extern _Atomic int64_t option_no_appendfsync_on_rewrite;     /* global: option storage; bool */
extern _Atomic int64_t option_auto_aof_rewrite_percentage;   /* global: option storage */
extern _Atomic int64_t option_auto_aof_rewrite_min_size;     /* global: option storage; bytes */
extern _Atomic int64_t option_aof_sync_delay;                /* global: option storage; us */

/* Neither changes while the server runs, so any thread may read them. */
const char *aof_file_name(void);   /* appendfilename: of the manifest without its ending, and of a file of old */
const char *aof_folder_name(void); /* appenddirname */

void aof_options_setup(void); /* after config_setup: adds the rows */
