/* Loads an RDB file into the store. Whoever calls is alone with the data: owns the gate, except during `pause`, and
 * while it waits for the source. Helper threads are idle then, and have ended when rdb_load returns. */
#pragma once

#include "persist/rdb_file.h"
#include "store/access.h"

struct rdb_load_request {
    struct access *access;
    struct rdb_limits limits;
    bool keeps_expired; /* for replicas: expired keys stay until the master deletes them */
    bool replaces;      /* replaces existing keys and libraries; otherwise they are an error */
    bool checks_sum;
    unsigned threads;     /* number of threads that make values and put them into the store; 0: none */
    int64_t key_delay_us; /* sleeps after each key; below zero: sleeps one microsecond after so many keys */
    /* Called now and then; other threads may use the data meanwhile. False: stop. May be NULL. */
    bool (*pause)(uint64_t bytes, uint64_t keys, void *context);
    /* Whether the next read of the source may wait for long. Then `rest` is called before and after it; in between
     * other threads may use the data. May be NULL. */
    bool (*may_wait)(struct byte_source *source);
    void (*rest)(bool begins, void *context);
    /* A library of functions. False: *error has the reason. NULL: a file with libraries is refused. */
    bool (*library)(struct slice source, bool replaces, char *error, size_t error_size);
    /* The local number of an origin whose versions are loaded. NULL: keys get no versions. */
    unsigned (*origin)(uint64_t id, void *context);
    void (*aux)(struct slice name, struct slice value, void *context); /* may be NULL */
    void *context;
    uint64_t pause_bytes; /* `pause` is called after so many bytes */
};

struct rdb_load_result {
    uint64_t keys, expired, empty, bytes;
    uint64_t overdue; /* of the keys that were loaded: expired ones that were kept */
    int version;
    enum status status;
    uint64_t failed_at; /* offset in the file */
    char error[512];    /* the reason */
};

/* False: result->error has the reason; the keys read until then are in the store. Observers, watchers
 * and clients that wait for keys are not told of loaded keys. */
must_check bool rdb_load(struct byte_source *source, const struct rdb_load_request *request,
                         struct rdb_load_result *result);
