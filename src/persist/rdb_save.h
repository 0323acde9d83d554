/* Writing all keys as an RDB file. */
#pragma once

#include "persist/rdb_write.h"
#include "store/snapshot.h"
#include "store/lru_lfu.h"

/* Why a file that is to be read by programs of before version 10 cannot be written. */
extern const char rdb_too_old_for_libraries[];

struct rdb_aux {
    struct slice name, value;
};

struct rdb_save_request {
    struct snapshot *keys;
    struct rdb_write_options options;
    /* When a key was used last, or how often, is told with it. */
    enum { RDB_USE_NOTHING, RDB_USE_IDLE, RDB_USE_FREQUENCY } use;
    struct lru_lfu_rule lfu;
    const struct rdb_aux *aux;
    size_t aux_count;
    /* Hands the source of each library of functions to `take`, which may be slow. NULL: there are none. */
    void (*libraries)(void (*take)(struct slice source, void *context), void *context);
    bool starts_writeback; /* while writing, so that the sync in the end is short */
    int64_t key_delay_us;  /* after each key; below zero: after so many of them one */
    /* Called now and then. False: stop. May be NULL. */
    bool (*progress)(uint64_t keys, void *context);
    void *context;
};

struct rdb_save_result {
    uint64_t keys, bytes;
    int version;
    char error[256]; /* what went wrong, with the file's name and the system's reason */
};

/* Writes `temp_path` (which must not exist), and puts it in the place of `path` when all of it is on the disk: else
 * `path` stays as it was. Both are in the same folder. */
must_check enum status rdb_save(const char *path, const char *temp_path, const struct rdb_save_request *request,
                                struct rdb_save_result *result);

/* Into any sink; the versions must be equal, as what has gone cannot be mended. */
must_check enum status rdb_save_to(struct byte_sink *sink, const struct rdb_save_request *request,
                                   struct rdb_save_result *result);
