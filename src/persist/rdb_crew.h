/* Putting keys into the store with several threads, while one reads them from a file.
 *
 *     file -> reader: where does each record end, whose stripe is it for -> batch
 *     batch -> hand: makes the values, puts them into its stripes
 *
 * Each stripe belongs to one hand, so hands take no locks, and keys of the same name keep their order. What is under
 * way is bounded. Without threads a batch is worked off by the reader itself: it is still worth it, as the places of
 * all its keys are fetched from memory together (5 million keys of 16 + 64 bytes: 2.4 s of CPU instead of 3.5). Whoever
 * calls owns the gate, and is the reader; all calls are its. */
#pragma once

#include "persist/rdb_load.h"

enum { RDB_CREW_THREADS_MOST = 64 };

struct rdb_crew;

/* What of it was found out so far; all of it after rdb_crew_rest. */
struct rdb_crew_totals {
    uint64_t keys, empty;
    enum status status;  /* the first failure in the file's order */
    uint64_t failed_at;
    char error[RDB_ERROR_BYTES];
};

struct rdb_crew *rdb_crew_create(const struct rdb_load_request *request); /* which outlives it */
void rdb_crew_destroy(struct rdb_crew **crew);                            /* rests first */

/* A record as struct rdb_handler gets it, or a value that is there already (taken over). False: something has failed,
 * nothing more is needed. */
must_check bool rdb_crew_give_record(struct rdb_crew *crew, const struct rdb_key *key, struct slice record);
must_check bool rdb_crew_give_value(struct rdb_crew *crew, const struct rdb_key *key, struct rdb_value *value);
/* Until all that was given is in the store: others may look at it then. */
void rdb_crew_rest(struct rdb_crew *crew, struct rdb_crew_totals *totals);
