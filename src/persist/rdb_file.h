/* Reading RDB files from front to end: what stands in them goes to a handler, one thing after the other. */
#pragma once

#include "persist/rdb_read_value.h"

struct rdb_key {
    struct slice name;
    unsigned db;
    int64_t expire_ms; /* EXPIRE_NEVER: no deadline */
    int64_t idle_s;    /* since it was used; -1: not told */
    int frequency;     /* of use, 0 to 255; -1: not told */
    unsigned type;     /* enum rdb_type */
    uint64_t offset;   /* of its type */
    uint64_t bytes;    /* that it takes with its value */
};

/* Functions that return a bool say with rdb_fail why they end the reading. Those that may be NULL: see there. */
struct rdb_handler {
    /* May take the value over (value->value.data is NULL then). The name is good until it returns. */
    bool (*key)(struct rdb_handler *handler, struct rdb_reader *reader, const struct rdb_key *key,
                struct rdb_value *value);
    /* If it is not NULL, most keys come here instead, as they stand in the file: from their type on to what tells of
     * their members' deadlines. rdb_read_record makes a value of it, in any thread. */
    bool (*record)(struct rdb_handler *handler, struct rdb_reader *reader, const struct rdb_key *key,
                   struct slice record);
    /* The source of a library of functions. NULL: a file that has some is refused. */
    bool (*library)(struct rdb_handler *handler, struct rdb_reader *reader, struct slice source);
    /* What the file tells of itself ("redis-ver"). May be NULL. */
    void (*aux)(struct rdb_handler *handler, struct slice name, struct slice value);
    /* About to come in this database: so many keys, of those with a deadline. A hint. May be NULL. */
    void (*sizes)(struct rdb_handler *handler, unsigned db, uint64_t keys, uint64_t expires);
    struct rdb_limits limits;
    unsigned database_count;
    int version;       /* of the file: set when it is known */
    bool has_checksum; /* it had one, and it was right */
};

/* Up to the checksum; what may follow is left. */
must_check bool rdb_read_file(struct rdb_reader *reader, struct rdb_handler *handler);

/* The reader, one of memory, is at the record's begin and has nothing else. Name and value: good until it reads again
 * or the record goes. `scratch` is the caller's, to be used again. */
must_check bool rdb_read_record(struct rdb_reader *reader, const struct rdb_limits *limits, struct buffer *scratch,
                                struct slice *name, struct rdb_value *value);
