/* In which version of RDB a snapshot for replicas is written. It is settled before the first byte; pure. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>

struct rdb_write_options;

struct snapshot_version {
    int least, most;        /* as in struct rdb_write_options */
    bool without_libraries; /* the replicas do not know functions */
};

/* Of the replicas that share it. */
enum snapshot_readers {
    SNAPSHOT_FOR_OTHERS, /* Redis, and servers unknown: the lowest version that holds what there is */
    SNAPSHOT_FOR_KEYDB,  /* reads version 9, and no functions */
    SNAPSHOT_FOR_VALKEY, /* from 9.0 on: reads up to 11 and its own version, which has deadlines of fields */
    SNAPSHOT_FOR_NEWEST  /* this server: reads all; up to 12, unless the data need more, for earlier ones of it */
};

/* What it has to hold: of the parts that are sent. */
struct snapshot_contents {
    bool has_libraries, had_streams, has_field_deadlines;
    bool may_have_idmp; /* streams with pairs of producers (data/stream_idmp.h) */
};

/* `options`: rdb-version; if it is fixed, it holds for all. */
struct snapshot_version snapshot_version_choose(const struct rdb_write_options *options, enum snapshot_readers readers,
                                                const struct snapshot_contents *contents);
