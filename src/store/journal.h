/* The journal: every effect on data, in the order in which it happened, as the byte stream that replicas read.
 *
 * Writers append while they hold the stripes of what they changed, so the order here agrees with the data's. A record
 * is one effect (or SELECT, MULTI, EXEC around effects); offsets count its RESP bytes only. Appending takes the lock
 * just to reserve room, then copies and publishes; a reader stops before the first record that is not published yet.
 *
 * Readers are a position and nothing else: there are no copies for each of them. Memory is a chain of blocks; one that
 * all readers have passed goes when what lies behind it exceeds the retention. While nobody reads, the journal is off
 * and costs one load a command; it is switched with the gate held, so that no effect is half seen.
 *
 * A reader may be slow in two ways. One that lets blocks spill (a replica) never keeps anybody waiting: what it has not
 * read yet and is more than the memory limit goes to a file that has no name. If that file cannot be written, or read
 * again, the reader is lost: it has to begin anew with all data. One that holds writers (the append only file) has a
 * limit instead; when it is further behind, `on_lag` is called, and who calls journal_append is to be kept from it
 * until that is over.
 *
 * Blocks may lie where they outlive the process (journal_tail.h).
 *
 * Offsets are of the stream that replicas read; records that these do not get take nothing of it. Positions count what
 * all records take in memory, so that each record has one of its own. */
#pragma once

#include "base/list.h"
#include "base/spinlock.h"
#include "store/effects.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct journal_block;
struct journal_spill;
struct journal_tail;

enum journal_flag {
    JOURNAL_BEGINS = 1 << 0,  /* MULTI */
    JOURNAL_ENDS = 1 << 1,    /* the last record of what belongs together */
    JOURNAL_SELECT = 1 << 2,  /* SELECT: part of the stream's bytes, not an effect */
    JOURNAL_MESSAGE = 1 << 3, /* PUBLISH, what a script keeps from files, or the MULTI and EXEC around nothing else: not
                               * for those who keep data */
    JOURNAL_AOF_ONLY = 1 << 4 /* a script said so: no part of the stream that replicas read, its size there is 0 */
};

struct journal {
    _Atomic bool on;            /* atomic: switched at the gate, read under stripes */
    _Atomic bool is_lagging;    /* atomic, relaxed: changed under the lock */
    _Atomic bool wants_tending; /* atomic, relaxed: journal_tend has something to do */
    _Atomic bool is_tended;     /* atomic: one thread does */
    struct spinlock lock;       /* rank LOCK_JOURNAL */
    struct journal_block *oldest GUARDED_BY(lock);
    struct journal_block *newest GUARDED_BY(lock);
    uint64_t end_offset GUARDED_BY(lock);       /* of the stream: bytes appended so far */
    int last_db GUARDED_BY(lock);               /* of the last record; -1: the next one selects */
    uint64_t free_position GUARDED_BY(lock);    /* where the next block begins, if there is none now */
    struct journal_tail *tail GUARDED_BY(lock); /* where blocks are made; NULL: in memory of the process */
    uint64_t nonce GUARDED_BY(lock);            /* the tail's; 0: none */
    _Atomic uint64_t unkept_position;           /* atomic, relaxed: written under the lock */
    unsigned reader_count GUARDED_BY(lock);
    struct list readers GUARDED_BY(lock);
    uint64_t retention_bytes GUARDED_BY(lock);
    uint64_t memory_bytes GUARDED_BY(lock);       /* of all blocks, with what they refer to */
    uint64_t memory_limit_bytes GUARDED_BY(lock); /* beyond it blocks go to the file, if a reader lets them; 0: none */
    uint64_t lag_limit_bytes GUARDED_BY(lock);    /* of readers that hold writers; 0: none */
    uint64_t lag_bound_offset GUARDED_BY(lock);   /* while the end is not beyond, nobody lags */
    unsigned spilled_count GUARDED_BY(lock);      /* blocks in the file */
    uint64_t spilled_bytes GUARDED_BY(lock), spilled_total_bytes GUARDED_BY(lock); /* now; ever */
    struct journal_spill *spill;                                                   /* const after init */
    /* const after start; the first is called under stripes and the lock: only atomics; the second under neither. */
    void (*on_lag)(bool lags);
    void (*on_lag_over)(void);
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
uint64_t journal_end_position(struct journal *journal);
/* What is before it is not all in the tail; what is behind it is. Who has seen the effect of a record (under the lock
 * of its stripe) sees it counted here. */
static inline uint64_t journal_unkept_position(const struct journal *journal)
{
    return atomic_load_explicit(&journal->unkept_position, memory_order_relaxed);
}
void journal_set_retention(struct journal *journal, uint64_t bytes);
void journal_set_memory_limit(struct journal *journal, uint64_t bytes);
void journal_set_lag_limit(struct journal *journal, uint64_t bytes);

struct journal_stats {
    uint64_t begin_offset, end_offset; /* of what is retained */
    uint64_t memory_bytes, spilled_bytes, spilled_total_bytes;
};
void journal_stats(struct journal *journal, struct journal_stats *stats);
uint64_t journal_memory_bytes(struct journal *journal);

/* Is there something that nobody needs any more, or more in memory than may be? Costs a load; then journal_tend is to
 * be called, by a thread that may wait for a disk: who appends holds stripes, and does nothing of that. It frees and
 * moves to the file, and returns at once if another is at it. Returns false if the file could not be written; errno
 * says why. */
static inline bool journal_wants_tending(const struct journal *journal)
{
    return atomic_load_explicit(&journal->wants_tending, memory_order_relaxed);
}
bool journal_tend(struct journal *journal);

enum journal_reader_flag { JOURNAL_READER_SPILLS = 1 << 0, JOURNAL_READER_HOLDS_WRITERS = 1 << 1 };

/* A place in the journal. Owned by one thread, but for what says otherwise. */
struct journal_reader {
    struct list_node node; /* the journal's; guarded by its lock */
    struct journal *journal;
    struct journal_block *block;
    char *data;             /* the block's records, or the copy from the file */
    size_t position, shown; /* in the data: of the next record, of the last one */
    struct buffer copy;
    unsigned flags; /* guarded by the lock, like: */
    unsigned skips; /* records with one of these flags are not shown */
    bool is_lost;   /* what comes next is gone; `error` is the errno that tells why */
    int error;
    _Atomic uint64_t offset; /* atomic, relaxed: where it is in the stream */
};

/* At the end of the journal, the gate held: what comes from now on will be read. The next record selects. */
void journal_reader_open(struct journal_reader *reader, struct journal *journal);
/* At a record's begin that is still retained, the journal being on; any thread. False: nothing begins there, or it has
 * gone. The database is the one that was selected there. */
must_check bool journal_reader_open_at(struct journal_reader *reader, struct journal *journal, uint64_t offset);
/* What it is and what it is not shown: enum journal_reader_flag, enum journal_flag. At first neither. */
void journal_reader_set(struct journal_reader *reader, unsigned flags, unsigned skips);
void journal_reader_close(struct journal_reader *reader); /* the gate held; the last one switches the journal off */

/* A record as a reader sees it; valid until the next call with this reader. */
struct journal_view {
    uint64_t offset; /* of its first byte in the stream */
    uint64_t size;   /* of its RESP bytes; 0 for JOURNAL_AOF_ONLY */
    unsigned db;
    unsigned flags;                  /* enum journal_flag */
    struct slice bytes;              /* without the blobs */
    const struct effect_blob *blobs; /* each belongs behind the first `position` bytes */
    uint32_t blob_count;
};

/* False: nothing more for now, or never again if the reader is lost. May wait for a disk if the reader's own lag has
 * gone to the file. */
must_check bool journal_reader_next(struct journal_reader *reader, struct journal_view *view);
void journal_view_append(const struct journal_view *view, struct buffer *buffer); /* the whole RESP bytes */

/* The same as a position, or that of the record it was shown last. Its own thread. False: not known now, as it reads
 * from the file. */
must_check bool journal_reader_position(const struct journal_reader *reader, uint64_t *position);
must_check bool journal_reader_shown_position(const struct journal_reader *reader, uint64_t *position);
/* Where the reader is: behind all that it was shown, and what it skipped. Any thread. */
static inline uint64_t journal_reader_offset(const struct journal_reader *reader)
{
    return atomic_load_explicit(&reader->offset, memory_order_relaxed);
}
