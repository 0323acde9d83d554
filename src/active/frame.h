/* Frames: what two of our nodes say to each other on a link, once both have agreed on it (handshake). Each direction is
 * a row of frames:
 *
 *     kind     1 byte, enum frame_kind
 *     size     varint, of the body
 *     body
 *     larges   FRAME_LARGES only: the large words of the body, one behind the other
 *
 * Bodies of all kinds but entries are in notice.h. The body of entries is a row of
 *
 *     head     1 byte: FRAME_HAS_*
 *     number   varint  if HAS_ORIGIN: the link's number of the origin; else that of the entry before in this frame
 *     uuid     16      if HAS_UUID: the number stands for this origin from here on
 *     prev     8       if HAS_PREV; else the stamp of the origin's last entry on this link
 *     stamp    varint  minus prev; at least 1
 *     wall     varint  if HAS_WALL: minus the wall time of the origin's last entry on this link; else the same.
 *                      Behind HAS_PREV it is always there, as a difference of either sign to the stamp's milliseconds
 *     mvcc     8       if HAS_MVCC: the entry came from KeyDB with it
 *     ops      varint  if HAS_OPS; else one operation follows
 *
 * and of each operation
 *
 *     head     1 byte: FRAME_OP_*, and the index of the key among the words << FRAME_OP_KEY_SHIFT; 0: it has no key
 *     db       varint  if OP_DB; else that of the operation before in this frame, at first 0
 *     seen     varint  if OP_EVICTS: the entry's stamp minus the stamp that the eviction saw; all of its entry
 *     words    varint  their number
 *     word     varint  its size, then its bytes; those of FRAME_LARGE_BYTES or more are among the larges instead
 *
 * A SET of a key of 16 and a value of 64 bytes takes 90 bytes, and 94 as the first one of a millisecond.
 *
 * Writers and readers of a link keep the numbers of origins, each the same. Nothing is allocated for what is announced:
 * room follows the bytes that are here. An owner each. */
#pragma once

#include "active/uuid.h"
#include "base/buffer.h"
#include "base/compiler.h"
#include "net/output.h"
#include "net/resp.h"
#include "store/journal.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    FRAME_VERSION_COMPARES = 2,
    FRAME_VERSION_PARTS = 2,
    FRAME_VERSION_MAKES = 3,
    FRAME_VERSION_CHANGES = 4
};                                                        /* from */
enum { FRAME_VERSION_LEAST = 1, FRAME_VERSION_MOST = 4 }; /* said in hello */

enum frame_kind {
    FRAME_HELLO = 1,
    FRAME_ENTRIES = 2,
    FRAME_LARGES = 3,  /* entries with large words */
    FRAME_BEAT = 4,    /* from version 4 on in another form (beats.h) */
    FRAME_WANT = 5,    /* the receiver asks for origins */
    FRAME_STOP = 6,    /* the receiver wants no more of origins */
    FRAME_STOPPED = 7, /* the sender sends no more of them */
    FRAME_STATE = 8,   /* the sender gives its state: bytes of a file (snapshot.h), without any: that was all */
    /* From version 2 on, for compare.h; bodies in comparison.h: */
    FRAME_COMPARE = 9,  /* the receiver asks for digests */
    FRAME_DIGESTS = 10, /* the sender's answer */
    FRAME_REPAIR = 11,  /* the receiver has found keys that differ */
    /* From version 3 on, without a body: */
    FRAME_MAKES = 12, /* the sender makes a file of its state, which may take long */
    FRAME_KIND_END = 13
};

enum {
    FRAME_HAS_ORIGIN = 1 << 0,
    FRAME_HAS_UUID = 1 << 1,
    FRAME_HAS_PREV = 1 << 2,
    FRAME_HAS_WALL = 1 << 3,
    FRAME_HAS_MVCC = 1 << 4,
    FRAME_HAS_OPS = 1 << 5,
    FRAME_IS_FLUSH = 1 << 6,
    FRAME_HEAD_END = 1 << 7,

    FRAME_OP_OVERWRITES = 1 << 0,
    FRAME_OP_EVICTS = 1 << 1,
    FRAME_OP_DB = 1 << 2,
    FRAME_OP_KEY_SHIFT = 3,
    FRAME_OP_KEY_MOST = 7,
    FRAME_OP_END = 1 << 6
};

enum {
    FRAME_LARGE_BYTES = RESP_LARGE_BYTES,
    FRAME_FULL_BYTES = 256 << 10, /* a writer with more than that should flush */
    FRAME_ORIGINS_MOST = 1024,    /* numbers on a link; beyond it the one that was used longest ago gets a new origin */
    FRAME_ERROR_BYTES = 160
};
#define FRAME_BODY_BYTES_MOST (UINT64_C(1) << 31)
#define FRAME_NOTICE_BYTES_MOST (UINT64_C(128) << 20) /* of all kinds but entries: these are buffered until whole */
#define FRAME_LARGE_BYTES_MOST (UINT64_C(1) << 40)

struct frame_op {
    const struct slice *words;
    const struct resp_blob_arg *blobs; /* of large words, ascending */
    uint32_t word_count, blob_count;
    uint32_t key_index; /* 0: no key */
    unsigned db;
    bool overwrites, evicts;
    uint64_t seen; /* of an eviction: the stamp of the key's last operation */
};

/* The operations of one stamp, at most one a key. */
struct frame_entry {
    struct uuid uuid; /* of the origin; its id is uuid_id of it */
    uint64_t origin;  /* the id */
    uint64_t stamp;
    uint64_t prev; /* the stamp of the origin's entry before */
    uint64_t mvcc; /* 0: it did not come from KeyDB */
    int64_t wall;  /* never falls at an origin */
    bool flush;
    bool is_raw; /* not in frames: its commands are those of a KeyDB server (place_describe_raw) */
    /* Surely, as of most: one operation, on one key, and neither an eviction nor a flush. Its database need not be
     * here. */
    bool is_of_one_key;
    const struct frame_op *ops;
    uint32_t op_count;
};

/* --- writing --- */

struct frame_writer;

struct frame_writer *frame_writer_create(void);
void frame_writer_destroy(struct frame_writer **writer); /* accepts NULL; leaves NULL */
/* Copies all but large words that have a blob. Entries of an origin come in its order. */
void frame_writer_add(struct frame_writer *writer, const struct frame_entry *entry);
/* Adds the entry of a record with a stamp, in one pass. False: it added nothing, as the record is not all of the entry,
 * or this is not the same origin's next one in this frame, or has blobs, or is large; frame_writer_add can. */
must_check bool frame_writer_add_record(struct frame_writer *writer, const struct journal_view *view);
size_t frame_writer_bytes(const struct frame_writer *writer); /* of what was added since the last flush */
/* Appends what was added as one frame; nothing if that is nothing. Call it before another frame is appended. */
void frame_writer_flush(struct frame_writer *writer, struct output *out);
/* Appends a frame of another kind, whose body is complete. */
void frame_write(struct output *out, enum frame_kind kind, struct slice body);

/* --- reading --- */

enum frame_result {
    FRAME_COMPLETE,
    FRAME_MORE, /* it takes more bytes than these */
    FRAME_ERROR /* the reader's error has the reason: close the link */
};

struct frame {
    enum frame_kind kind;
    struct slice body;                 /* of all kinds but entries */
    const struct frame_entry *entries; /* FRAME_ENTRIES, also with large words */
    uint32_t entry_count;
};

struct frame_reader;

/* Operations of databases from db_count on are refused. A node may have fewer databases than its peers: it passes on
 * what it cannot take (active/place.h), so it reads with the most that a server may have. */
enum { FRAME_DATABASES_MOST = INT32_MAX };
struct frame_reader *frame_reader_create(unsigned db_count);
void frame_reader_destroy(struct frame_reader **reader); /* accepts NULL; leaves NULL */
/* Takes the next frame; *used bytes at the front are done, also with FRAME_MORE. What the frame points to is valid
 * until the next call, as are the bytes that were given; for a blob that shall live longer acquire a reference. */
must_check enum frame_result frame_read(struct frame_reader *reader, const char *data, size_t size, size_t *used,
                                        struct frame *frame);
/* The entries that were read last shall outlive the bytes that were given, until the next frame is read. */
void frame_reader_keep(struct frame_reader *reader);
const char *frame_reader_error(const struct frame_reader *reader); /* a line: which frame, where, what */

/* After FRAME_MORE, when all bytes are used: where the next bytes of a large word may be received instead, 0 if
 * nowhere. It is as much as is here already, at least 1 MiB, so announcing takes no memory. */
size_t frame_reader_large_room(struct frame_reader *reader, char **room);
void frame_reader_large_received(struct frame_reader *reader, size_t size);
size_t frame_reader_bytes(const struct frame_reader *reader); /* memory, without blobs */
