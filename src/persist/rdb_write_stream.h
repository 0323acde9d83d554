/* Streams in RDB; for the files of persist/ only. */
#pragma once

#include "data/stream.h"
#include "persist/rdb_write.h"

/* The lowest version that keeps what clients can rely on: version 9 knows no counts of entries added and read. When a
 * consumer was active is kept from version 11 on, but does not by itself ask for it: it is told nowhere but in XINFO,
 * and readers of before would not load the rest. */
int rdb_stream_version(const struct stream *stream);
void rdb_write_stream(struct rdb_writer *writer, enum rdb_type type, const struct stream *stream);
