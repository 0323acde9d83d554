/* Reading RDB: lengths, texts, numbers. The bytes may be anybody's: whatever they claim is checked against what is
 * left before memory is taken for it. A reader belongs to one thread.
 *
 * A function that fails says what is wrong and where once (rdb_fail); after that everything fails, so that a caller may
 * look at the end. Slices handed out are good until the next call that reads. */
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
    struct byte_source *source; /* NULL: all there is stands in the window */
    char *window;               /* bytes of the source from `offset` on; owned if there is a source */
    size_t capacity;
    size_t at, end; /* in the window: the next byte; behind the last one */
    uint64_t offset;
    uint64_t size; /* of the source in all, or BYTES_UNKNOWN */
    uint64_t crc;  /* of what was read up to summed_at */
    size_t summed_at;
    bool sums;  /* a checksum is wanted */
    bool marks; /* what is read from marked_at on is wanted in one piece */
    size_t marked_at;
    struct buffer marked;   /* of that, what has left the window */
    struct buffer scratch;  /* texts longer than the window */
    struct buffer unpacked; /* what was compressed */
    struct buffer first;    /* of two texts */
    char digits[NUMBER_I64_SPACE];
    enum status status; /* of the first failure */
    uint64_t failed_at;
    char error[RDB_ERROR_BYTES];
};

void rdb_reader_init(struct rdb_reader *reader, struct byte_source *source);
void rdb_reader_init_memory(struct rdb_reader *reader, struct slice bytes); /* bytes outlive the reader */
/* Other bytes for a reader of memory; its buffers stay. */
void rdb_reader_reset_memory(struct rdb_reader *reader, struct slice bytes);
void rdb_reader_fini(struct rdb_reader *reader);

static inline uint64_t rdb_reader_offset(const struct rdb_reader *reader)
{
    return reader->offset + reader->at;
}
/* Bytes that may still come; BYTES_UNKNOWN if nobody knows. */
uint64_t rdb_reader_left(const struct rdb_reader *reader);
/* The checksum of all that was read so far. */
uint64_t rdb_reader_crc(struct rdb_reader *reader);

/* From the byte on that was read last, what is read is kept; rdb_reader_marked gives it, good until the next call that
 * reads. */
void rdb_reader_mark(struct rdb_reader *reader);
must_check bool rdb_reader_marked(struct rdb_reader *reader, struct slice *bytes);

/* Always false. The first failure stays. */
bool rdb_fail(struct rdb_reader *reader, enum status status, const char *format, ...) PRINTF_LIKE(3, 4);
static inline bool rdb_corrupt(struct rdb_reader *reader, const char *what)
{
    return rdb_fail(reader, STATUS_CORRUPT, "%s", what);
}

must_check bool rdb_read_byte(struct rdb_reader *reader, unsigned *byte);
must_check bool rdb_read_bytes(struct rdb_reader *reader, uint64_t size, struct slice *bytes); /* in one piece */
must_check bool rdb_read_u16(struct rdb_reader *reader, uint16_t *number);                     /* little-endian */
must_check bool rdb_read_u32(struct rdb_reader *reader, uint32_t *number);
must_check bool rdb_read_u64(struct rdb_reader *reader, uint64_t *number);
must_check bool rdb_read_i64(struct rdb_reader *reader, int64_t *number);
must_check bool rdb_read_double(struct rdb_reader *reader, double *number);
must_check bool rdb_read_double_text(struct rdb_reader *reader, double *number); /* of versions before 8 */
must_check bool rdb_read_length(struct rdb_reader *reader, uint64_t *length);
/* How many things of at least `least_bytes` each follow. */
must_check bool rdb_read_count(struct rdb_reader *reader, unsigned least_bytes, uint64_t *count);
must_check bool rdb_read_text(struct rdb_reader *reader, struct slice *text);
/* Two texts, both good until the next call. */
must_check bool rdb_read_texts(struct rdb_reader *reader, struct slice *first, struct slice *second);
must_check bool rdb_skip_bytes(struct rdb_reader *reader, uint64_t size);
must_check bool rdb_skip_text(struct rdb_reader *reader); /* reads over it: no look at what is compressed */
/* The next byte, which stays; false: there is none, which is no failure. */
must_check bool rdb_peek_byte(struct rdb_reader *reader, unsigned *byte);
