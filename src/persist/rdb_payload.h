/* Single values, as DUMP returns and RESTORE takes them: type | value | records | version u16 | checksum u64. */
#pragma once

#include "persist/rdb_read_value.h"
#include "persist/rdb_write.h"

enum { RDB_PAYLOAD_TAIL_BYTES = 10 };

/* Writes the value into a writer that is empty and has no sink. */
void rdb_payload_write(struct rdb_writer *writer, const struct entry *entry);
/* Appends version and checksum. */
void rdb_payload_seal(struct rdb_writer *writer);
/* The same of a value whose elements come one by one: begin, each rdb_write_one, each rdb_write_member_deadline unless
 * begin returns true, end. The writer may have a sink, if it computes checksums and writes nothing else. */
must_check bool rdb_payload_begin(struct rdb_writer *writer, struct rdb_elements *elements, const struct entry *entry,
                                  int64_t first_ms, uint64_t count);
void rdb_payload_end(struct rdb_writer *writer, const struct rdb_elements *elements);

/* True if the payload is complete and its version can be read. *body is the part before version and checksum. */
must_check bool rdb_payload_check(struct slice payload, struct slice *body);
int rdb_payload_version(struct slice payload); /* of one that was checked: for rdb_reader.version */
/* For tests (DEBUG SET-SKIP-CHECKSUM-VALIDATION): accepts any checksum. Any thread. */
void rdb_skip_checksums(bool on);
bool rdb_skips_checksums(void);
/* Reads the value. The reader is one of memory, at the begin of the body. False: reader->error has the reason. */
must_check bool rdb_payload_read(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value);
