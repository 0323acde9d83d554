/* The journal: every effect on data, in the order in which it happened, as the byte stream that replicas read.
 *
 * Writers append while they hold the stripes of what they changed, so the order here agrees with the data's. A record
 * is one effect (or SELECT, MULTI, EXEC around effects); offsets count its RESP bytes only. Appending takes the lock
 * just to reserve room, then copies and publishes; a reader stops before the first record that is not published yet.
 *
 * Readers are a position and nothing else: there are no copies for each of them. Memory is a chain of blocks; one that
 * all readers have passed goes when what lies behind it exceeds the retention. While nobody reads, the journal is off
 * and costs one load a command; it is switched with the gate held, so that no effect is half seen. */
#pragma once

#include "base/spinlock.h"
#include "store/effects.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct journal_block;

enum journal_flag {
    JOURNAL_BEGINS = 1 << 0,  /* MULTI */
    JOURNAL_ENDS = 1 << 1,    /* the last record of what belongs together */
    JOURNAL_SELECT = 1 << 2,  /* SELECT: part of the stream's bytes, not an effect */
    JOURNAL_MESSAGE = 1 << 3, /* PUBLISH, what a script keeps from files, or the MULTI and EXEC around nothing else: not
                               * for those who keep data */
    JOURNAL_AOF_ONLY = 1 << 4 /* a script said so: no part of the stream that replicas read, its size there is 0 */
};

struct journal {
    _Atomic bool on;                               /* atomic: switched at the gate, read under stripes */
    struct spinlock lock;                          /* rank LOCK_JOURNAL */
    struct journal_block *oldest GUARDED_BY(lock);
    struct journal_block *newest GUARDED_BY(lock);
    uint64_t end_offset GUARDED_BY(lock);          /* of the stream: bytes appended so far */
    int last_db GUARDED_BY(lock);                  /* of the last record; -1: the next one selects */
    unsigned reader_count GUARDED_BY(lock);
    uint64_t retention_bytes GUARDED_BY(lock);
};

void journal_init(struct journal *journal);
void journal_fini(struct journal *journal); /* no readers are left */

static inline bool journal_is_on(const struct journal *journal)
{
    return atomic_load_explicit(&journal->on, memory_order_relaxed);
}

/* Appends all effects in one piece; several, or `transaction`, stand between MULTI and EXEC. Returns the stream's
 * offset behind them. Any thread; the stripes of what changed are held. */
uint64_t journal_append(struct journal *journal, const struct effects *effects, bool transaction);
uint64_t journal_end_offset(struct journal *journal);
void journal_set_retention(struct journal *journal, uint64_t bytes);
uint64_t journal_memory_bytes(struct journal *journal);

/* A place in the journal. Owned by one thread. */
struct journal_reader {
    struct journal *journal;
    struct journal_block *block;
    size_t position; /* in the block */
};

/* At the end of the journal, the gate held: what comes from now on will be read. The next record selects. */
void journal_reader_open(struct journal_reader *reader, struct journal *journal);
void journal_reader_close(struct journal_reader *reader); /* the gate held; the last one switches the journal off */

/* A record as a reader sees it; valid until the next call with this reader. */
struct journal_view {
    uint64_t offset; /* of its first byte in the stream */
    uint64_t size;   /* of its RESP bytes; 0 for JOURNAL_AOF_ONLY */
    unsigned db;
    unsigned flags;  /* enum journal_flag */
    struct slice bytes;              /* without the blobs */
    const struct effect_blob *blobs; /* each belongs behind the first `position` bytes */
    uint32_t blob_count;
};

/* False: nothing more for now. */
must_check bool journal_reader_next(struct journal_reader *reader, struct journal_view *view);
void journal_view_append(const struct journal_view *view, struct buffer *buffer); /* the whole RESP bytes */
