/* Writing RDB: lengths, texts, numbers, and whole values, into a sink or into memory. A writer belongs to one thread.
 *
 * Nothing here fails by itself: what the sink answers is kept, everything after an error is dropped, and
 * rdb_writer_flush tells.
 *
 * Each value is written in the form that suits the version. With `least` < `most` it is the lowest version's form that
 * holds all of the value, and `version` is in the end the lowest one that may read everything. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "persist/byte_io.h"
#include "persist/rdb_format.h"
#include "store/entry.h"

struct rdb_write_options {
    int least, most; /* versions, RDB_VERSION_WRITTEN_LEAST ... RDB_VERSION_MOST */
    bool compresses; /* texts, if it is worth it */
    bool checksums;
};

struct rdb_form;

struct rdb_writer {
    struct rdb_write_options options;
    struct buffer out;      /* what the sink has not got yet */
    struct byte_sink *sink; /* NULL: all stays in `out` */
    uint64_t flushed;       /* bytes the sink has got */
    uint64_t crc;           /* of those */
    int version;
    enum status status;
    struct buffer scratch;
};

void rdb_writer_init(struct rdb_writer *writer, const struct rdb_write_options *options, struct byte_sink *sink);
void rdb_writer_fini(struct rdb_writer *writer);
must_check enum status rdb_writer_flush(struct rdb_writer *writer);

static inline uint64_t rdb_writer_offset(const struct rdb_writer *writer)
{
    return writer->flushed + writer->out.size;
}

void rdb_write_byte(struct rdb_writer *writer, unsigned byte);
void rdb_write_bytes(struct rdb_writer *writer, struct slice bytes); /* as they are, without a length */
void rdb_write_length(struct rdb_writer *writer, uint64_t length);
void rdb_write_text(struct rdb_writer *writer, struct slice text);
/* The same for a text that is LZF already; `original`: bytes it has uncompressed. */
void rdb_write_compressed(struct rdb_writer *writer, struct slice compressed, size_t original);
void rdb_write_number(struct rdb_writer *writer, int64_t number); /* as the text of it */
void rdb_write_u64(struct rdb_writer *writer, uint64_t number);   /* 8 bytes, little-endian */
void rdb_write_double(struct rdb_writer *writer, double number);  /* likewise */
void rdb_write_aux(struct rdb_writer *writer, struct slice name, struct slice value);

/* The least of a version's forms that holds everything, or the form of the version that was wished for. */
void rdb_writer_need(struct rdb_writer *writer, int version);

/* --- values --- */

/* The form in which the entry's value is to be written, by its `write` (types.h), behind its number and the key. */
const struct rdb_form *rdb_write_form_of(struct rdb_writer *writer, const struct entry *entry);
/* What belongs to the value and has no place in it: deadlines of members, as records. */
void rdb_write_records(struct rdb_writer *writer, const struct rdb_form *form, const struct entry *entry);
