/* Reads RDB files from front to end. A handler gets their contents, one item after the other. */
#pragma once

#include "persist/rdb_read_value.h"

struct rdb_key {
    struct slice name;
    unsigned db;
    int64_t expire_ms; /* EXPIRE_NEVER: no deadline */
    int64_t idle_s;    /* since its last use; -1: unknown */
    int frequency;     /* LFU count, 0 to 255; -1: unknown */
    uint64_t version;  /* store/stamp.h, with the number that handler->origin gave; 0: none */
    uint64_t mvcc;     /* KeyDB's stamp of its last change; 0: none was said */
    unsigned type;     /* enum rdb_type */
    uint64_t offset;   /* offset of its type */
    uint64_t bytes;    /* size of the whole record */
    size_t value_at;   /* of raw bytes: where its value begins in them */
};

/* Callbacks. A function that returns false has called rdb_fail with the reason; reading ends then. */
struct rdb_handler {
    /* May take the value over (value->value.data is NULL then). The name is valid until it returns. */
    bool (*key)(struct rdb_handler *handler, struct rdb_reader *reader, const struct rdb_key *key,
                struct rdb_value *value);
    /* If not NULL, gets most keys as raw bytes: from their type to the deadlines of their members. rdb_read_record
     * makes a value of these in any thread. */
    bool (*record)(struct rdb_handler *handler, struct rdb_reader *reader, const struct rdb_key *key,
                   struct slice record);
    bool takes_all_records; /* all keys come as raw bytes */
    /* The source of a library of functions. NULL: a file with libraries is refused. */
    bool (*library)(struct rdb_handler *handler, struct rdb_reader *reader, struct slice source);
    /* A fact about the file ("redis-ver"). May be NULL. */
    void (*aux)(struct rdb_handler *handler, struct slice name, struct slice value);
    /* Returns the local number of an origin whose versions follow. Those of origins that are not known any more get the
     * last number. NULL: versions are checked, but keys have none. */
    unsigned (*origin)(struct rdb_handler *handler, uint64_t id);
    /* Hints about the keys that follow in this database: their number, and how many have a deadline. May be NULL. */
    void (*sizes)(struct rdb_handler *handler, unsigned db, uint64_t keys, uint64_t expires);
    struct rdb_limits limits;
    unsigned database_count;
    int version;       /* version of the file: set when it is known */
    bool has_checksum; /* the file had a checksum, and it was right */
};

/* Reads up to the checksum; bytes behind it are not read. */
must_check bool rdb_read_file(struct rdb_reader *reader, struct rdb_handler *handler);

/* The same, record by record: a key, or what stands between keys. What callbacks got is valid until the next one. */
struct rdb_walk;
enum rdb_step { RDB_STEP_MORE, RDB_STEP_END, RDB_STEP_FAILED };

struct rdb_walk *rdb_walk_create(struct rdb_reader *reader, struct rdb_handler *handler);
void rdb_walk_destroy(struct rdb_walk **handle); /* accepts NULL; leaves NULL */
must_check enum rdb_step rdb_walk_next(struct rdb_walk *walk);

/* The reader is one of memory and contains exactly this record. Name and value are valid until the next read or until
 * the record's bytes are freed. `scratch` is the caller's, for use in several calls. */
must_check bool rdb_read_record(struct rdb_reader *reader, const struct rdb_limits *limits, struct buffer *scratch,
                                struct slice *name, struct rdb_value *value);
