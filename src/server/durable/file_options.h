/* Options of the append-only file, of RDB files and of DUMP payloads. Numbers: any thread; strings: see options.h. */
#pragma once

#include "base/rows.h"
#include "persist/rdb_write.h"

enum aof_sync { AOF_SYNC_EVERY_SECOND, AOF_SYNC_ALWAYS, AOF_SYNC_NEVER };

extern _Atomic int64_t option_appendonly;                  /* global: option storage; bool */
extern _Atomic int64_t option_appendfsync;                 /* global: option storage; enum aof_sync */
extern _Atomic int64_t option_aof_load_truncated;          /* global: option storage; bool */
extern _Atomic int64_t option_aof_use_rdb_preamble;        /* global: option storage; bool */
extern _Atomic int64_t option_aof_timestamps;              /* global: option storage; bool */
extern _Atomic int64_t option_aof_rewrite_writes_back;     /* global: option storage; bool */
extern _Atomic int64_t option_aof_keeps_history;           /* global: option storage; bool */
extern _Atomic int64_t option_no_appendfsync_on_rewrite;   /* global: option storage; bool */
extern _Atomic int64_t option_auto_aof_rewrite_percentage; /* global: option storage */
extern _Atomic int64_t option_auto_aof_rewrite_min_size;   /* global: option storage; bytes */
extern _Atomic int64_t option_aof_lag_limit;               /* global: option storage; bytes, 0: none */
extern _Atomic int64_t option_aof_sync_delay;              /* global: option storage; us */

/* appendfilename and appenddirname, which are constant while the server runs, so any thread may read them. The first is
 * the manifest's name without its ending, and the name of a single file of old versions. */
const char *aof_file_name(void);
const char *aof_folder_name(void);

struct rdb_write_options rdb_payload_options(void); /* how DUMP writes values */
struct rdb_write_options rdb_file_options(void);    /* how RDB files are written; checksums also for reading */
const char *rdb_file_name(void);                    /* dbfilename; a string: see above */
bool rdb_starts_writeback(void);
bool disk_errors_are_ignored(void); /* replica-ignore-disk-write-errors */
bool rdb_stops_writes(void);        /* stop-writes-on-bgsave-error */
int64_t rdb_save_delay_us(void);    /* for tests: sleeps after each key */
int64_t rdb_load_delay_us(void);

enum snapshot_method { SNAPSHOT_THREADS, SNAPSHOT_FORK };
enum snapshot_method snapshot_method(void);
unsigned snapshot_thread_count(void);
uint64_t snapshot_kept_most(void); /* bytes that changes may leave for a snapshot; 0: no bound */

void file_options_setup(void); /* after config_setup: adds the rows */
