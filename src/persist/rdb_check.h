/* Reads an RDB file from front to end without loading it, to find out whether it is whole. Any thread. */
#pragma once

#include "persist/rdb_load.h"

struct rdb_check {
    struct rdb_limits limits;
    unsigned database_count;
    bool checks_sum;
    /* Makes each value, and throws it away: finds what is wrong inside of values. Most of them are skipped otherwise,
     * which is enough where a checksum covers them. */
    bool makes_values;
    uint64_t pause_bytes;
    bool (*pause)(void); /* called after so many bytes; false: stop, with STATUS_INTERRUPTED */
    void (*library)(struct slice source, void *context); /* may be NULL */
    void *context;
};

/* False: result->error has the reason. *is_summed: the file had a checksum, it was compared, and is right. */
must_check bool rdb_check(struct byte_source *source, const struct rdb_check *check, struct rdb_load_result *result,
                          bool *is_summed);
