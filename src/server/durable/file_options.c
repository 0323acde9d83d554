#include "server/durable/file_options.h"

#include "base/gate.h"
#include "base/mem.h"
#include "server/config/config.h"
#include "store/snapshot.h"

#include <string.h>

/* -------------------------------------------------------------------------------------------- append only file -- */

_Atomic int64_t option_appendonly;                  /* global: option storage */
_Atomic int64_t option_appendfsync;                 /* global: option storage */
_Atomic int64_t option_aof_load_truncated;          /* global: option storage */
_Atomic int64_t option_aof_use_rdb_preamble;        /* global: option storage */
_Atomic int64_t option_aof_timestamps;              /* global: option storage */
_Atomic int64_t option_aof_rewrite_writes_back;     /* global: option storage */
_Atomic int64_t option_aof_keeps_history;           /* global: option storage */
_Atomic int64_t option_no_appendfsync_on_rewrite;   /* global: option storage */
_Atomic int64_t option_auto_aof_rewrite_percentage; /* global: option storage */
_Atomic int64_t option_auto_aof_rewrite_min_size;   /* global: option storage */
_Atomic int64_t option_aof_sync_delay;              /* global: option storage */
_Atomic int64_t option_aof_lag_limit;               /* global: option storage */
static struct option_string aof_name, folder_name;  /* global: option storage; never NULL */

/* clang-format off */
static const struct option_enum syncs[] = {
    {"everysec", AOF_SYNC_EVERY_SECOND}, {"always", AOF_SYNC_ALWAYS}, {"no", AOF_SYNC_NEVER}, {NULL, 0},
};
/* clang-format on */

const char *aof_file_name(void)
{
    return aof_name.data;
}

const char *aof_folder_name(void)
{
    return folder_name.data;
}

static const char *check_aof_name(const struct option_row *row, int64_t number, struct slice text)
{
    (void)row;
    (void)number;
    if (text.size == 0)
        return "appendfilename can't be empty";
    return memchr(text.data, '/', text.size) == NULL ? NULL : "appendfilename can't be a path, just a filename";
}

static const char *check_aof_folder(const struct option_row *row, int64_t number, struct slice text)
{
    (void)row;
    (void)number;
    if (text.size == 0)
        return "appenddirname can't be empty";
    return memchr(text.data, '/', text.size) == NULL ? NULL : "appenddirname can't be a path, just a dirname";
}

static const struct option_row aof_rows[] = {
    ROW_BOOL("appendonly", &option_appendonly, 0, OPTION_MUTABLE | OPTION_DENY_LOADING,
             "Write every change to the append-only file, and load it at start."),
    ROW_ENUM("appendfsync", &option_appendfsync, AOF_SYNC_EVERY_SECOND, syncs, OPTION_MUTABLE,
             "When the append-only file is synced."),
    ROW_STRING("appendfilename", &aof_name, "appendonly.aof", OPTION_IMMUTABLE,
               "First part of the names of the append-only files.", .check = check_aof_name),
    ROW_STRING("appenddirname", &folder_name, "appendonlydir", OPTION_IMMUTABLE,
               "Directory of the append-only files, in `dir`.", .check = check_aof_folder),
    ROW_BOOL("aof-load-truncated", &option_aof_load_truncated, 1, OPTION_MUTABLE,
             "Load an append-only file whose last command is incomplete, without that command."),
    ROW_BOOL("aof-use-rdb-preamble", &option_aof_use_rdb_preamble, 1, OPTION_MUTABLE,
             "A rewrite makes an RDB file, which is smaller and loads faster than commands."),
    ROW_BOOL("aof-timestamp-enabled", &option_aof_timestamps, 0, OPTION_MUTABLE,
             "Write timestamps, for keydb-check-aof --truncate-to-timestamp."),
    ROW_BOOL("aof-rewrite-incremental-fsync", &option_aof_rewrite_writes_back, 1, OPTION_MUTABLE,
             "Sync the file of a rewrite while it is written, not only at its end."),
    ROW_BOOL("aof-disable-auto-gc", &option_aof_keeps_history, 0, OPTION_MUTABLE,
             "Keep append-only files that are no longer needed."),
    ROW_BOOL("no-appendfsync-on-rewrite", &option_no_appendfsync_on_rewrite, 0, OPTION_MUTABLE,
             "Do not sync the append-only file while a child process saves or rewrites."),
    ROW_INT("auto-aof-rewrite-percentage", &option_auto_aof_rewrite_percentage, 100, 0, INT32_MAX, OPTION_MUTABLE,
            "Growth since the last rewrite, in percent, that starts a rewrite; 0: never."),
    ROW_MEMORY("auto-aof-rewrite-min-size", &option_auto_aof_rewrite_min_size, 64 << 20, 0, INT64_MAX, OPTION_MUTABLE,
               "Size of the append-only files below which no rewrite starts."),
    ROW_MEMORY("aof-lag-limit", &option_aof_lag_limit, 256 << 20, 0, INT64_MAX, OPTION_MUTABLE,
               "Bytes by which the append-only file may lag before writes are paused; 0: no limit."),
    ROW_INT("aof-sync-delay", &option_aof_sync_delay, 0, 0, 60 * 1000 * 1000, OPTION_MUTABLE | OPTION_HIDDEN,
            "For tests: microseconds by which each sync is delayed."),
};

/* --------------------------------------------------------------------------------------------------- RDB files -- */

static _Atomic int64_t version, compresses, checksums, writes_back, stops_writes; /* global: option storage */
static _Atomic int64_t ignores_disk_errors;                                       /* global: option storage */
static _Atomic int64_t save_delay_us, load_delay_us;                              /* global: option storage */
static struct option_string rdb_name; /* global: option storage; never NULL */

static const struct option_enum versions[] = {
    {"auto", 0}, {"9", 9}, {"10", 10}, {"11", 11}, {"12", 12}, {"13", 13}, {"80", RDB_VERSION_VALKEY}, {NULL, 0},
};

struct rdb_write_options rdb_payload_options(void)
{
    int wanted = (int)OPTION_GET(version);

    return (struct rdb_write_options){.least = wanted != 0 ? wanted : RDB_VERSION_WRITTEN_LEAST,
                                      .most = wanted != 0 ? wanted : RDB_VERSION_MOST,
                                      .compresses = OPTION_IS(compresses)};
}

struct rdb_write_options rdb_file_options(void)
{
    struct rdb_write_options options = rdb_payload_options();

    options.checksums = OPTION_IS(checksums);
    return options;
}

const char *rdb_file_name(void)
{
    gate_assert_alone();
    return rdb_name.data;
}

bool rdb_starts_writeback(void)
{
    return OPTION_IS(writes_back);
}

bool disk_errors_are_ignored(void)
{
    return OPTION_IS(ignores_disk_errors);
}

bool rdb_stops_writes(void)
{
    return OPTION_IS(stops_writes);
}

int64_t rdb_save_delay_us(void)
{
    return OPTION_GET(save_delay_us);
}

int64_t rdb_load_delay_us(void)
{
    return OPTION_GET(load_delay_us);
}

static const char *check_rdb_name(const struct option_row *row, int64_t number, struct slice text)
{
    (void)row;
    (void)number;
    if (text.size == 0)
        return "dbfilename can't be empty";
    return memchr(text.data, '/', text.size) == NULL ? NULL : "dbfilename can't be a path, just a filename";
}

static const struct option_row rdb_rows[] = {
    ROW_ENUM("rdb-version", &version, 0, versions, OPTION_MUTABLE,
             "Version of RDB files and DUMP payloads; auto: the lowest that holds the data."),
    ROW_BOOL("rdbcompression", &compresses, 1, OPTION_MUTABLE, "Compress strings in RDB files and DUMP payloads."),
    ROW_BOOL("rdbchecksum", &checksums, 1, OPTION_IMMUTABLE, "Write and check a checksum in RDB files."),
    ROW_BOOL("rdb-save-incremental-fsync", &writes_back, 1, OPTION_MUTABLE,
             "Sync RDB files while they are written, not only at their end."),
    ROW_BOOL("stop-writes-on-bgsave-error", &stops_writes, 1, OPTION_MUTABLE, "Refuse writes while snapshots fail."),
    ROW_BOOL("replica-ignore-disk-write-errors", &ignores_disk_errors, 0, OPTION_MUTABLE,
             "Apply the master's writes while they cannot be written to the disk."),
    ROW_INT("rdb-key-save-delay", &save_delay_us, 0, INT32_MIN, INT32_MAX, OPTION_MUTABLE | OPTION_HIDDEN,
            "For tests: microseconds by which each saved key is delayed."),
    ROW_INT("key-load-delay", &load_delay_us, 0, INT32_MIN, INT32_MAX, OPTION_MUTABLE | OPTION_HIDDEN,
            "For tests: microseconds by which each loaded key is delayed."),
    ROW_STRING("dbfilename", &rdb_name, "dump.rdb", OPTION_MUTABLE | OPTION_PROTECTED, "Name of the RDB file in `dir`.",
               .check = check_rdb_name),
};

/* --------------------------------------------------------------------------------------------------- snapshots -- */

enum { METHOD_AUTO, METHOD_THREADS, METHOD_FORK };
enum { KEPT_LEAST_BYTES = 32 << 20, KEPT_SHARE = 20 };
static _Atomic int64_t method, thread_count, kept_most; /* global: option storage */

static const struct option_enum methods[] = {
    {"auto", METHOD_AUTO},
    {"threads", METHOD_THREADS},
    {"fork", METHOD_FORK},
    {NULL, 0},
};

enum snapshot_method snapshot_method(void)
{
    return OPTION_GET(method) == METHOD_FORK ? SNAPSHOT_FORK : SNAPSHOT_THREADS;
}

unsigned snapshot_thread_count(void)
{
    return (unsigned)OPTION_GET(thread_count);
}

uint64_t snapshot_kept_most(void)
{
    const uint64_t wanted = OPTION_GET_U64(kept_most);

    return wanted != 0 ? wanted : MAX(mem_used() / KEPT_SHARE, (uint64_t)KEPT_LEAST_BYTES);
}

static const struct option_row snapshot_rows[] = {
    ROW_ENUM("snapshot-method", &method, METHOD_AUTO, methods, OPTION_MUTABLE,
             "How keys are saved while the server continues: by threads, or by a forked process; auto: by threads."),
    ROW_INT("snapshot-threads", &thread_count, 1, 1, SNAPSHOT_THREADS_MOST, OPTION_MUTABLE,
            "Threads that write one snapshot."),
    ROW_MEMORY("snapshot-memory-limit", &kept_most, 0, 0, INT64_MAX, OPTION_MUTABLE,
               "Bytes that changes leave for a running snapshot before writers slow down; 0: a twentieth of the data."),
};

/* ------------------------------------------------------------------------------------------------------- setup -- */

void file_options_setup(void)
{
    gate_assert_main_alone();
    config_add_rows(aof_rows, countof(aof_rows));
    config_add_rows(rdb_rows, countof(rdb_rows));
    config_add_rows(snapshot_rows, countof(snapshot_rows));
}
