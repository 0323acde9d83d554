/* Writing all keys as commands: the base of an append only file without RDB preamble.
 *
 * Strings, lists, sets, hashes and sorted sets become the commands that make them, some elements each, and one for each
 * deadline of a member; other values one RESTORE. Libraries need who reads them to know FUNCTION, as
 * version 10 of RDB files does: below that there can be none. */
#pragma once

#include "persist/rdb_write.h"
#include "store/snapshot.h"

struct aof_dump_request {
    const char *path, *temp_path; /* as for rdb_save */
    struct snapshot *keys;
    bool starts_writeback;
    bool writes_time;                 /* one line in front: when */
    struct rdb_write_options payload; /* how the values of RESTORE are written */
    int64_t key_delay_us;             /* for tests: after each key */
    void (*libraries)(void (*take)(struct slice source, void *context), void *context); /* as for rdb_save */
    bool (*progress)(uint64_t keys, void *context);                                     /* now and then; false: stop */
    void *context;
};

/* *error says what went wrong. */
must_check enum status aof_dump_save(const struct aof_dump_request *request, char *error, size_t error_size);
