/* Putting keys into the store with several threads, while one reads them from a file.
 *
 *     file -> reader: where does each record end, whose stripe is it for -> batch
 *     batch -> loader: makes the values, puts them into its stripes
 *
 * Each stripe belongs to one loader, so loaders take no locks, and keys of the same name keep their order. The batches
 * under way are bounded. Without threads a batch is worked off by the reader itself: it is still worth it, as the
 * places of all its keys are fetched from memory together (5 million keys of 16 + 64 bytes: 2.4 s of CPU instead of
 * 3.5). Whoever calls owns the gate, and is the reader; all calls are its. */
#pragma once

#include "persist/rdb_load.h"

enum { RDB_LOADERS_MOST = 64 };

struct rdb_loaders;

/* What of it was found out so far; all of it after rdb_loaders_rest. */
struct rdb_loaders_totals {
    uint64_t keys, empty;
    enum status status; /* the first failure in the file's order */
    uint64_t failed_at;
    char error[RDB_ERROR_BYTES];
};

struct rdb_loaders *rdb_loaders_create(const struct rdb_load_request *request); /* which outlives it */
void rdb_loaders_destroy(struct rdb_loaders **loaders);                         /* rests first */

/* A record as struct rdb_handler gets it, or a value that is there already (taken over). False: something has failed,
 * nothing more is needed. */
must_check bool rdb_loaders_give_record(struct rdb_loaders *loaders, const struct rdb_key *key, struct slice record);
must_check bool rdb_loaders_give_value(struct rdb_loaders *loaders, const struct rdb_key *key, struct rdb_value *value);
/* Until all that was given is in the store: others may look at it then. */
void rdb_loaders_rest(struct rdb_loaders *loaders, struct rdb_loaders_totals *totals);
