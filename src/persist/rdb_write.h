/* Writes RDB: lengths, texts, numbers, and whole values, into a sink or into memory. A writer belongs to one thread.
 *
 * The functions return no errors: the sink's first error is kept, everything after it is dropped, and rdb_writer_flush
 * returns it.
 *
 * Each value is written in the form of the version. If `least` < `most`, a value is written in the form of the lowest
 * version that can hold it completely; at the end, `version` is the lowest version that can read everything. */
#pragma once

#include "base/assert.h"
#include "base/buffer.h"
#include "base/compiler.h"
#include "persist/byte_io.h"
#include "persist/rdb_format.h"
#include "store/entry.h"

struct rdb_write_options {
    int least, most; /* versions, RDB_VERSION_WRITTEN_LEAST ... RDB_VERSION_MOST; or both are RDB_VERSION_VALKEY */
    bool compresses; /* compresses texts if it pays */
    bool checksums;
};

/* These exclude everything but RDB_VERSION_VALKEY. */
static inline bool rdb_is_for_valkey(const struct rdb_write_options *options)
{
    return options->least == RDB_VERSION_VALKEY;
}

struct rdb_form;

enum { RDB_PACKED_MOST_BYTES = 32 << 20 };

/* A text that comes in parts. A length stands in front of it, so what parts are compressed to waits until the last one
 * has come, or until it is more than RDB_PACKED_MOST_BYTES: then the text is written as it is. */
struct rdb_text {
    uint64_t size, left;  /* bytes, and how many are still to come */
    bool is_plain;        /* what has come is written, and so will be the rest */
    struct buffer packed; /* parts, compressed */
    struct buffer sizes;  /* of each part: struct packed_part */
};

struct rdb_writer {
    struct rdb_write_options options;
    struct buffer out;      /* bytes not yet written to the sink */
    struct byte_sink *sink; /* NULL: all bytes stay in `out` */
    uint64_t flushed;       /* bytes written to the sink */
    uint64_t crc;           /* checksum of these bytes */
    int version;
    enum status status;
    struct buffer scratch;
    uint64_t elements; /* announced elements still to come */
    struct rdb_text text;
};

void rdb_writer_init(struct rdb_writer *writer, const struct rdb_write_options *options, struct byte_sink *sink);
void rdb_writer_fini(struct rdb_writer *writer);
must_check enum status rdb_writer_flush(struct rdb_writer *writer);

static inline uint64_t rdb_writer_offset(const struct rdb_writer *writer)
{
    return writer->flushed + writer->out.size;
}

void rdb_write_byte(struct rdb_writer *writer, unsigned byte);
void rdb_write_bytes(struct rdb_writer *writer, struct slice bytes); /* raw bytes, without a length */
void rdb_write_length(struct rdb_writer *writer, uint64_t length);
/* Announces so many elements. Call rdb_write_element before each element. */
void rdb_write_count(struct rdb_writer *writer, uint64_t count);
static inline void rdb_write_element(struct rdb_writer *writer)
{
    assert(writer->elements != 0);
    writer->elements--;
}
void rdb_write_text(struct rdb_writer *writer, struct slice text);
/* The same for a text that comes in parts (of less than 2 GiB), which are `size` bytes together. */
void rdb_write_text_begin(struct rdb_writer *writer, uint64_t size);
void rdb_write_text_part(struct rdb_writer *writer, struct slice part);
void rdb_write_text_end(struct rdb_writer *writer);
/* Writes a text that is compressed by LZF already. `original` is its uncompressed size. */
void rdb_write_compressed(struct rdb_writer *writer, struct slice compressed, size_t original);
void rdb_write_number(struct rdb_writer *writer, int64_t number); /* as its decimal text */
void rdb_write_u64(struct rdb_writer *writer, uint64_t number);   /* 8 bytes, little-endian */
void rdb_write_double(struct rdb_writer *writer, double number);  /* 8 bytes, little-endian */
void rdb_write_aux(struct rdb_writer *writer, struct slice name, struct slice value);

/* The lowest version in which nothing is lost that this process may have: for readers that know every version. */
int rdb_version_for_all(void);
/* Raises the version to at least this one, if options.most allows. */
void rdb_writer_need(struct rdb_writer *writer, int version);
/* A hash with deadlines needs the form that has them; false: they go into records. */
must_check bool rdb_may_have_deadlines(struct rdb_writer *writer);
/* In such a form: times count from the earliest one, plus one; 0: none. */
void rdb_write_deadline(struct rdb_writer *writer, int64_t expire_ms, int64_t least_ms);
/* In Valkey's: the time itself; -1: none. */
void rdb_write_whole_deadline(struct rdb_writer *writer, int64_t expire_ms);

/* --- values --- */

/* Returns the form for the entry's value. Write its number and the key, then call rdb_write_value. */
const struct rdb_form *rdb_write_form_of(struct rdb_writer *writer, const struct entry *entry);
void rdb_write_value(struct rdb_writer *writer, const struct rdb_form *form, const struct entry *entry);

/* The same for a value whose elements come one by one (data/former.h), and whose entry has but the rest of it. Instead
 * of rdb_write_value: the head, each element, each deadline of a member if the form has none, the rest. */
struct rdb_elements {
    const struct entry *entry;
    const struct rdb_form *form;
    int64_t first_ms; /* the earliest deadline of a member, or EXPIRE_NEVER */
};
struct former_element;
/* Returns its form. */
const struct rdb_form *rdb_elements_begin(struct rdb_elements *elements, struct rdb_writer *writer,
                                          const struct entry *entry, int64_t first_ms);
void rdb_write_elements_head(struct rdb_writer *writer, const struct rdb_elements *elements, uint64_t count);
void rdb_write_one(struct rdb_writer *writer, const struct rdb_elements *elements, const struct former_element *element,
                   int64_t expire_ms);
void rdb_write_elements_rest(struct rdb_writer *writer, const struct rdb_elements *elements);
/* A record: the deadline of a member of the value before it. */
void rdb_write_member_deadline(struct rdb_writer *writer, struct slice member, int64_t expire_ms);
/* Writes data that the form has no place for, as records: deadlines of members. */
void rdb_write_records(struct rdb_writer *writer, const struct rdb_form *form, const struct entry *entry);
