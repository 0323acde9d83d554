#include "server/durable/aof_options.h"

#include "server/config/config.h"

#include <string.h>

_Atomic int64_t option_appendonly; /* global: option storage */
_Atomic int64_t option_appendfsync; /* global: option storage */
_Atomic int64_t option_aof_load_truncated; /* global: option storage */
_Atomic int64_t option_aof_use_rdb_preamble; /* global: option storage */
_Atomic int64_t option_aof_timestamps; /* global: option storage */
_Atomic int64_t option_aof_rewrite_writes_back; /* global: option storage */
_Atomic int64_t option_aof_keeps_history; /* global: option storage */
_Atomic int64_t option_no_appendfsync_on_rewrite; /* global: option storage */
_Atomic int64_t option_auto_aof_rewrite_percentage; /* global: option storage */
_Atomic int64_t option_auto_aof_rewrite_min_size; /* global: option storage */
_Atomic int64_t option_aof_sync_delay; /* global: option storage */
static struct option_string file_name, folder_name; /* global: option storage; never NULL */

static const struct option_enum syncs[] = {
    {"everysec", AOF_SYNC_EVERY_SECOND}, {"always", AOF_SYNC_ALWAYS}, {"no", AOF_SYNC_NEVER}, {NULL, 0},
};

const char *aof_file_name(void)
{
    return file_name.data;
}

const char *aof_folder_name(void)
{
    return folder_name.data;
}

static const char *check_file(const struct option_row *row, int64_t number, struct slice text)
{
    (void)row;
    (void)number;
    if (text.size == 0)
        return "appendfilename can't be empty";
    return memchr(text.data, '/', text.size) == NULL ? NULL : "appendfilename can't be a path, just a filename";
}

static const char *check_folder(const struct option_row *row, int64_t number, struct slice text)
{
    (void)row;
    (void)number;
    if (text.size == 0)
        return "appenddirname can't be empty";
    return memchr(text.data, '/', text.size) == NULL ? NULL : "appenddirname can't be a path, just a dirname";
}

static const struct option_row rows[] = {
    ROW_BOOL("appendonly", &option_appendonly, 0, OPTION_MUTABLE | OPTION_DENY_LOADING,
             "every change is written to a file, from which the data is loaded at start"),
    ROW_ENUM("appendfsync", &option_appendfsync, AOF_SYNC_EVERY_SECOND, syncs, OPTION_MUTABLE,
             "when what was written goes to the disk"),
    ROW_STRING("appendfilename", &file_name, "appendonly.aof", OPTION_IMMUTABLE, "the first part of the files' names",
               .check = check_file),
    ROW_STRING("appenddirname", &folder_name, "appendonlydir", OPTION_IMMUTABLE, "their folder, in the folder `dir`",
               .check = check_folder),
    ROW_BOOL("aof-load-truncated", &option_aof_load_truncated, 1, OPTION_MUTABLE,
             "load a file whose last command is not all there, without it"),
    ROW_BOOL("aof-use-rdb-preamble", &option_aof_use_rdb_preamble, 1, OPTION_MUTABLE,
             "a rewrite leaves an RDB file, which is smaller and loads faster, and not commands"),
    ROW_BOOL("aof-timestamp-enabled", &option_aof_timestamps, 0, OPTION_MUTABLE,
             "write down when what was written, for keydb-check-aof --truncate-to-timestamp"),
    ROW_BOOL("aof-rewrite-incremental-fsync", &option_aof_rewrite_writes_back, 1, OPTION_MUTABLE,
             "a rewrite goes to the disk while it is written, not all at the end"),
    ROW_BOOL("aof-disable-auto-gc", &option_aof_keeps_history, 0, OPTION_MUTABLE,
             "files that are no longer needed stay"),
    ROW_BOOL("no-appendfsync-on-rewrite", &option_no_appendfsync_on_rewrite, 0, OPTION_MUTABLE,
             "while a child saves or rewrites, nothing else is forced to the disk"),
    ROW_INT("auto-aof-rewrite-percentage", &option_auto_aof_rewrite_percentage, 100, 0, INT32_MAX, OPTION_MUTABLE,
            "rewrite when the files have grown by so much since the last time; 0: never"),
    ROW_MEMORY("auto-aof-rewrite-min-size", &option_auto_aof_rewrite_min_size, 64 << 20, 0, INT64_MAX, OPTION_MUTABLE,
               "but not while they are smaller than this"),
    ROW_INT("aof-sync-delay", &option_aof_sync_delay, 0, 0, 60 * 1000 * 1000, OPTION_MUTABLE | OPTION_HIDDEN,
            "for tests: microseconds that each sync takes longer"),
};

void aof_options_setup(void)
{
    config_add_rows(rows, countof(rows));
}
