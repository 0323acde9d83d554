/* Single values as DUMP gives and RESTORE takes them: type | value | records | version u16 | checksum u64. */
#pragma once

#include "persist/rdb_read_value.h"
#include "persist/rdb_write.h"

enum { RDB_PAYLOAD_TAIL_BYTES = 10 };

/* Into the writer, which begins with it and has no sink. */
void rdb_payload_write(struct rdb_writer *writer, const struct entry *entry);
/* Version and checksum behind what is in the writer. */
void rdb_payload_seal(struct rdb_writer *writer);

/* Is it whole, and of a version that can be read? What stands before the tail is left in *body. */
must_check bool rdb_payload_check(struct slice payload, struct slice *body);
/* For tests (DEBUG SET-SKIP-CHECKSUM-VALIDATION): checksums are right whatever they are. Any thread. */
void rdb_skip_checksums(bool on);
bool rdb_skips_checksums(void);
/* The value; false: reader->error says why not. The reader is one of memory, at the body's begin. */
must_check bool rdb_payload_read(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value);
