/* Jobs in RDB files: KeyDB's type 64, `script, start, interval, keys, arguments`, and in the records behind the value
 * what that leaves out: when the next run is (as the deadline of a member called as the key) and, in a record that
 * KeyDB passes over, that the job is to be run once only. A file of KeyDB's does not tell; what it has repeats. */
#pragma once

#include "data/cron.h"
#include "persist/rdb_read.h"
#include "persist/rdb_write.h"

#define RDB_AUX_CRON_SINGLE SLICE("keydb-cron-single")

void rdb_write_cron(struct rdb_writer *writer, const struct cron *cron);
void rdb_write_cron_records(struct rdb_writer *writer, struct slice key, const struct cron *cron);
must_check bool rdb_read_cron(struct rdb_reader *reader, struct value *value);
void rdb_cron_set_next(struct cron *cron, int64_t next_ms);
