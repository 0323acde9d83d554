/* Parses RDB: lengths, texts, numbers. The bytes are not trusted: every length is checked against the bytes that are
 * left before memory is allocated for it. A reader belongs to one thread.
 *
 * A function that fails records the reason and the offset once (rdb_fail). After that every call fails, so a caller may
 * check only at the end. Returned slices are valid until the next call that reads. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/number.h"
#include "base/slice.h"
#include "base/status.h"
#include "persist/byte_io.h"
#include "persist/rdb_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RDB_ERROR_BYTES = 200 };

struct rdb_reader {
    struct byte_source *source; /* NULL: all bytes are in the window */
    char *window;               /* bytes of the source from `offset` on; owned if there is a source */
    size_t capacity;
    size_t at, end; /* in the window: the next byte; the end of the bytes */
    uint64_t offset;
    uint64_t size; /* total size of the source, or BYTES_UNKNOWN */
    uint64_t crc;  /* checksum of the bytes up to summed_at */
    size_t summed_at;
    int version; /* of what is read, where types depend on it (rdb_type_in); 0: not RDB_VERSION_VALKEY */
    bool sums;   /* compute a checksum */
    bool marks;  /* keep the bytes from marked_at on */
    size_t marked_at;
    struct buffer marked;   /* the part of these bytes that has left the window */
    struct buffer scratch;  /* texts longer than the window */
    struct buffer unpacked; /* decompressed text */
    struct buffer first;    /* the first of two texts */
    char digits[NUMBER_I64_SPACE];
    enum status status; /* of the first failure */
    uint64_t failed_at;
    char error[RDB_ERROR_BYTES];
};

void rdb_reader_init(struct rdb_reader *reader, struct byte_source *source);
void rdb_reader_init_memory(struct rdb_reader *reader, struct slice bytes); /* the bytes must outlive the reader */
/* Gives a reader of memory other bytes; its buffers stay. */
void rdb_reader_reset_memory(struct rdb_reader *reader, struct slice bytes);
void rdb_reader_fini(struct rdb_reader *reader);

static inline uint64_t rdb_reader_offset(const struct rdb_reader *reader)
{
    return reader->offset + reader->at;
}
/* The number of bytes that are left, or BYTES_UNKNOWN. */
uint64_t rdb_reader_left(const struct rdb_reader *reader);
/* The checksum of all bytes read so far. */
uint64_t rdb_reader_crc(struct rdb_reader *reader);

/* Keeps the bytes from the one that was read last on. rdb_reader_marked, which must be called before the next mark,
 * returns them; valid until the next call that reads. */
void rdb_reader_mark(struct rdb_reader *reader);
must_check bool rdb_reader_marked(struct rdb_reader *reader, struct slice *bytes);

/* Records a failure; the first one stays. Always returns false. */
bool rdb_fail(struct rdb_reader *reader, enum status status, const char *format, ...) PRINTF_LIKE(3, 4);
static inline bool rdb_corrupt(struct rdb_reader *reader, const char *what)
{
    return rdb_fail(reader, STATUS_CORRUPT, "%s", what);
}

must_check bool rdb_read_byte(struct rdb_reader *reader, unsigned *byte);
must_check bool rdb_read_bytes(struct rdb_reader *reader, uint64_t size, struct slice *bytes); /* contiguous */
must_check bool rdb_read_u16(struct rdb_reader *reader, uint16_t *number);                     /* little-endian */
must_check bool rdb_read_u32(struct rdb_reader *reader, uint32_t *number);
must_check bool rdb_read_u64(struct rdb_reader *reader, uint64_t *number);
must_check bool rdb_read_i64(struct rdb_reader *reader, int64_t *number);
must_check bool rdb_read_double(struct rdb_reader *reader, double *number);
must_check bool rdb_read_double_text(struct rdb_reader *reader, double *number); /* as in versions before 8 */
must_check bool rdb_read_length(struct rdb_reader *reader, uint64_t *length);
/* Reads a count of elements that take at least `least_bytes` each. */
must_check bool rdb_read_count(struct rdb_reader *reader, unsigned least_bytes, uint64_t *count);
must_check bool rdb_read_text(struct rdb_reader *reader, struct slice *text);
/* Reads two texts; both are valid until the next call. */
must_check bool rdb_read_texts(struct rdb_reader *reader, struct slice *first, struct slice *second);
must_check bool rdb_skip_bytes(struct rdb_reader *reader, uint64_t size);
must_check bool rdb_skip_text(struct rdb_reader *reader); /* skips it without decompressing */
/* Returns the next byte without consuming it. False: there is none; this is not a failure. */
must_check bool rdb_peek_byte(struct rdb_reader *reader, unsigned *byte);
