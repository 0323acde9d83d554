/* Reading the values of keys, in every form that any version writes, into the forms of this program. */
#pragma once

#include "data/deadlines.h"
#include "data/hash.h"
#include "data/quicklist.h"
#include "data/set.h"
#include "data/zset.h"
#include "persist/rdb_read.h"
#include "store/entry.h"

/* Which forms values of each type are kept in. */
struct rdb_limits {
    struct hash_limits hash;
    struct set_limits set;
    struct zset_limits zset;
    struct quicklist_limits list;
    bool skips_strange; /* values of types that are not here are read over: for who only looks at a file */
};

struct rdb_value {
    enum value_type type;
    unsigned form;            /* enum rdb_type: in which it stands there */
    bool is_empty;            /* a list, set, hash or sorted set without anything in it; there is no value then */
    bool is_strange;          /* it was read over */
    struct slice text;        /* a string: good until the next call that reads */
    struct value value;       /* any other; owned by whoever has the struct */
    struct deadlines members; /* of the value; owned likewise */
};

/* False: it failed, and there is nothing to destroy. */
must_check bool rdb_read_value(struct rdb_reader *reader, unsigned type, const struct rdb_limits *limits,
                               struct rdb_value *value);
void rdb_value_destroy(struct rdb_value *value); /* what is still owned */

/* An RDB_AUX record behind a value. A deadline of one of its members comes as two of them, of which the first is left
 * in `member` (empty to begin with). False: the record is something else. */
bool rdb_value_take_record(struct rdb_value *value, struct buffer *member, struct slice name, struct slice text);

/* Such records up to the end, or to something that is none; what else they tell is passed over. */
must_check bool rdb_value_read_members(struct rdb_reader *reader, struct rdb_value *value);

const char *rdb_type_name(unsigned type); /* for people: "hash as listpack" */
