/* Puts keys into the store with several threads, while one thread reads them from a file.
 *
 *     file -> reader: finds the end of each record and the stripe of its key -> batch
 *     batch -> loader: makes the values, puts them into its stripes
 *
 * Each stripe belongs to one loader, so loaders take no locks, and keys of the same name keep their order. The number
 * of batches is bounded. Without threads the reader itself processes a batch. Batches still help then, as all their
 * keys are prefetched together (5 million keys of 16 + 64 bytes: 2.4 s of CPU time instead of 3.5). Whoever calls owns
 * the gate, and is the reader; only the reader, the thread that made them, calls these functions. */
#pragma once

#include "persist/rdb_load.h"

enum { RDB_LOADERS_MOST = 64 };

struct rdb_loaders;

/* The totals known so far; complete after rdb_loaders_rest. */
struct rdb_loaders_totals {
    uint64_t keys, empty;
    enum status status; /* the first failure in the file's order */
    uint64_t failed_at;
    char error[RDB_ERROR_BYTES];
};

struct rdb_loaders *rdb_loaders_create(const struct rdb_load_request *request); /* the request must outlive it */
void rdb_loaders_destroy(struct rdb_loaders **loaders);                         /* calls rdb_loaders_rest first */

/* Takes a record from struct rdb_handler, or a finished value (takes it over). False: a record has failed, and no more
 * are needed. */
must_check bool rdb_loaders_give_record(struct rdb_loaders *loaders, const struct rdb_key *key, struct slice record);
must_check bool rdb_loaders_give_value(struct rdb_loaders *loaders, const struct rdb_key *key, struct rdb_value *value);
/* Waits until all records are in the store. Other threads may use the data then. */
void rdb_loaders_rest(struct rdb_loaders *loaders, struct rdb_loaders_totals *totals);
