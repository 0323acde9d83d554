/* Single values, as DUMP returns and RESTORE takes them: type | value | records | version u16 | checksum u64. */
#pragma once

#include "persist/rdb_read_value.h"
#include "persist/rdb_write.h"

enum { RDB_PAYLOAD_TAIL_BYTES = 10 };

/* Writes the value into a writer that is empty and has no sink. */
void rdb_payload_write(struct rdb_writer *writer, const struct entry *entry);
/* Appends version and checksum. */
void rdb_payload_seal(struct rdb_writer *writer);

/* True if the payload is complete and its version can be read. *body is the part before version and checksum. */
must_check bool rdb_payload_check(struct slice payload, struct slice *body);
/* For tests (DEBUG SET-SKIP-CHECKSUM-VALIDATION): accepts any checksum. Any thread. */
void rdb_skip_checksums(bool on);
bool rdb_skips_checksums(void);
/* Reads the value. The reader is one of memory, at the begin of the body. False: reader->error has the reason. */
must_check bool rdb_payload_read(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value);
