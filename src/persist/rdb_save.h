/* Writes all keys as an RDB file. */
#pragma once

#include "persist/rdb_write.h"
#include "store/snapshot.h"
#include "store/stamp.h"
#include "store/lru_lfu.h"

/* The error if functions exist and the file must be readable for versions before 10. */
extern const char rdb_too_old_for_libraries[];

/* Origins by their local number. */
struct rdb_origins {
    uint64_t ids[VERSION_ORIGINS];   /* 0: nobody's */
    uint64_t since[VERSION_ORIGINS]; /* versions up to this stamp are of others, who are not known any more */
};

struct rdb_aux {
    struct slice name, value;
};

struct rdb_save_request {
    struct snapshot *keys;
    struct rdb_write_options options;
    /* Writes the time since the last use, or the LFU count, with each key. */
    enum { RDB_USE_NOTHING, RDB_USE_IDLE, RDB_USE_FREQUENCY } use;
    struct lru_lfu_rule lfu;
    const struct rdb_aux *aux;
    size_t aux_count;
    /* Calls `take`, which may be slow, with the source of each library of functions. NULL: there are none. */
    void (*libraries)(void (*take)(struct slice source, void *context), void *context);
    const struct rdb_origins *origins; /* writes the version of each key that has one; NULL: no versions */
    /* Gives records (RDB_AUX_ORDER_RECORD) until `take` returns false. They stand behind all keys; of data that go on
     * changing before them, as what is still to be given is kept meanwhile. NULL: none. */
    void (*records)(struct snapshot *keys, bool (*take)(struct slice record, void *context), void *context);
    bool with_mvcc; /* writes KeyDB's stamp with each key: the milliseconds and counter of its version, or 0 */
    /* Writes keys and members past their deadlines, too; otherwise they are left out, but for members of large values
     * (snapshot.h). */
    bool with_expired;
    bool starts_writeback; /* the kernel starts writing to the disk early, so that the sync at the end is short */
    int64_t key_delay_us;  /* sleeps after each key; below zero: sleeps one microsecond after so many keys */
    /* Called now and then. False: stop. May be NULL. */
    bool (*progress)(uint64_t keys, void *context);
    /* Of a file: called just before it gets its name, and right behind it. False: it does not get it. May be NULL. */
    bool (*may_commit)(void *context);
    void (*committed)(void *context);
    void *context;
};

struct rdb_save_result {
    uint64_t keys, bytes;
    int version;
    char error[256]; /* the reason, with the file's name and the system's error */
};

/* Writes `temp_path`, which must not exist, and renames it to `path` when all of it is on the disk. On failure `path`
 * is unchanged. Both are in the same folder. */
must_check enum status rdb_save(const char *path, const char *temp_path, const struct rdb_save_request *request,
                                struct rdb_save_result *result);

/* Writes into any sink. options.least and options.most must be equal, since the version is written first. */
must_check enum status rdb_save_to(struct byte_sink *sink, const struct rdb_save_request *request,
                                   struct rdb_save_result *result);
