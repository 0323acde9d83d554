/* Streams in RDB; for the files of persist/ only. */
#pragma once

#include "data/stream.h"
#include "data/value.h"
#include "persist/rdb_read.h"

/* False: it failed; the value is what has been read so far, or none. */
must_check bool rdb_read_stream(struct rdb_reader *reader, unsigned type, struct value *value);
