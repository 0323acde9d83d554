/* Reads the values of keys, in the forms of all versions, and converts them to the encodings of this server. */
#pragma once

#include "data/deadlines.h"
#include "data/hash.h"
#include "data/quicklist.h"
#include "data/set.h"
#include "data/zset.h"
#include "persist/rdb_read.h"
#include "store/entry.h"

/* The limits that decide the encoding of a value of each type. */
struct rdb_limits {
    struct hash_limits hash;
    struct set_limits set;
    struct zset_limits zset;
    struct quicklist_limits list;
    bool skips_strange; /* skips values of types that are not supported: for programs that only inspect a file */
};

struct rdb_value {
    enum value_type type;
    unsigned form;            /* enum rdb_type: its form in the file */
    bool is_empty;            /* a list, set, hash or sorted set without elements; there is no value then */
    bool is_strange;          /* the value was skipped */
    struct slice text;        /* a string: valid until the next call that reads */
    struct value value;       /* any other type; owned by the owner of the struct */
    struct deadlines members; /* deadlines of the value's members; owned likewise */
};

/* False: it failed, and there is nothing to destroy. */
must_check bool rdb_read_value(struct rdb_reader *reader, unsigned type, const struct rdb_limits *limits,
                               struct rdb_value *value);
void rdb_value_destroy(struct rdb_value *value); /* destroys what the struct still owns */

/* Takes an RDB_AUX record behind a value. A member's deadline consists of two records; the first is kept in `member`
 * (empty at first). False: it is a different record. */
bool rdb_value_take_record(struct rdb_value *value, struct buffer *member, struct slice name, struct slice text);

/* Reads such records up to the end or to another item. Skips records of other kinds. */
must_check bool rdb_value_read_members(struct rdb_reader *reader, struct rdb_value *value);

const char *rdb_type_name(unsigned type); /* for people: "hash as listpack" */
