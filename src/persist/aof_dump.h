/* Writes all keys as commands: the base of an append-only file without RDB preamble.
 *
 * Strings, lists, sets, hashes and sorted sets become the commands that create them, several elements each, and one
 * command for each deadline of a member. Other values become one RESTORE. Libraries of functions need a reader that
 * knows FUNCTION, as version 10 of RDB files does; with a lower version there must be none. */
#pragma once

#include "persist/rdb_write.h"
#include "store/snapshot.h"

struct aof_dump_request {
    const char *path, *temp_path; /* as in rdb_save */
    struct snapshot *keys;
    bool starts_writeback;
    bool writes_time;                 /* writes one line with the time first */
    struct rdb_write_options payload; /* how the payloads of RESTORE are written */
    int64_t key_delay_us;             /* for tests: sleeps after each key */
    void (*libraries)(void (*take)(struct slice source, void *context), void *context); /* as in rdb_save */
    bool (*progress)(uint64_t keys, void *context); /* called now and then; false: stop */
    void *context;
};

/* On failure *error has the reason. */
must_check enum status aof_dump_save(const struct aof_dump_request *request, char *error, size_t error_size);
