/* Reading an RDB file into the store. Whoever calls is alone with the data: owns the gate, but for `pause`. The threads
 * that help are done before `pause` is called, and gone in the end. */
#pragma once

#include "persist/rdb_file.h"
#include "store/access.h"

struct rdb_load_request {
    struct access *access;
    struct rdb_limits limits;
    bool keeps_expired; /* a replica's: its master says when they go */
    bool replaces;      /* keys and libraries that are there already; else they are an error */
    bool checks_sum;
    unsigned threads;     /* of its own that make values and put them into the store; 0: none */
    int64_t key_delay_us; /* after each key; below zero: after so many of them one */
    /* Called now and then; others may use the data meanwhile. False: stop. May be NULL. */
    bool (*pause)(uint64_t bytes, uint64_t keys, void *context);
    /* A library of functions; false: *error says why not. NULL: a file that has some is refused. */
    bool (*library)(struct slice source, bool replaces, char *error, size_t error_size);
    void (*aux)(struct slice name, struct slice value, void *context); /* may be NULL */
    void *context;
    uint64_t pause_bytes; /* after so many */
};

struct rdb_load_result {
    uint64_t keys, expired, empty, bytes;
    int version;
    enum status status;
    uint64_t failed_at; /* where in the file */
    char error[512];    /* what is wrong there */
};

/* False: result->error says why; what was read until then is in the store. */
must_check bool rdb_load(struct byte_source *source, const struct rdb_load_request *request,
                         struct rdb_load_result *result);
