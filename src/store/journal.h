/* The journal: every effect on data, in the order in which it happened, as the byte stream that replicas read.
 *
 * Writers append while they hold the stripes of the keys that they changed, so the journal has the order of the data. A
 * record is one effect (or SELECT, MULTI or EXEC around effects); offsets count its RESP bytes only. Appending takes
 * the lock only to reserve room, then copies and publishes. A reader stops before the first record that is not
 * published yet.
 *
 * A reader is only a position: it has no copy of the stream. Memory is a chain of blocks. A block that all readers have
 * passed is freed when the blocks behind it exceed the retention. Without a reader the journal is off and costs one
 * load for each command, unless it is kept (journal_keep). It is switched with the gate owned, so that no effect is
 * recorded in part.
 *
 * There are two kinds of slow readers. A reader that lets blocks spill (a replica) never makes writers wait: the part
 * that it has not read and that exceeds the memory limit goes to a file without a name. If that file cannot be written
 * or read, or is longer than its limit, the reader is lost: it has to begin anew with all data. The limit costs only
 * the reader furthest behind. A reader that holds writers (the append-only file) has a limit of its own instead. When
 * it is further behind, `on_lag` is called, and callers must stop calling journal_append until `on_lag_over` is called.
 *
 * Blocks may be in memory that outlives the process (journal_tail.h).
 *
 * While it stamps (active replication), each group of effects that peers get has a stamp of this origin, taken under
 * the lock, so stamps ascend with the journal. The records of these effects carry it; the stream and its offsets do not
 * change.
 *
 * Offsets are those of the stream that replicas read; records that replicas do not get take nothing of it. Positions
 * count the bytes of all records in memory, so each record has a position of its own. */
#pragma once

#include "base/list.h"
#include "base/spinlock.h"
#include "store/effects.h"
#include "store/stamp.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct journal_block;
struct journal_spill;
struct journal_tail;

enum journal_flag {
    JOURNAL_BEGINS = 1 << 0, /* MULTI */
    JOURNAL_ENDS = 1 << 1,   /* the last record of a group */
    JOURNAL_SELECT = 1 << 2, /* SELECT: part of the stream's bytes, not an effect */
    /* PUBLISH, effects that a script hides from files, or the MULTI and EXEC around such records only: not for readers
     * that keep data. */
    JOURNAL_MESSAGE = 1 << 3,
    JOURNAL_AOF_ONLY = 1 << 4, /* a script hides it from replicas: it takes nothing of their stream */
    /* For peers of an active server: for nobody else, so it has both flags. */
    JOURNAL_OPERATION = JOURNAL_MESSAGE | JOURNAL_AOF_ONLY,
    JOURNAL_NOT_FOR_PEERS = 1 << 5, /* operations say it, or peers find out for themselves */
    /* The record has a struct journal_stamp; those that are not for peers have that of the operations beside them. */
    JOURNAL_STAMPED = 1 << 6,
    /* Of stamped records for peers: */
    JOURNAL_ENTRY_ENDS = 1 << 7, /* the last one with this stamp */
    JOURNAL_OVERWRITES = 1 << 8, /* enum effect_flag */
    JOURNAL_EVICTS = 1 << 9,
    JOURNAL_FLUSH = 1 << 10,
    JOURNAL_KEY_SHIFT = 11, /* the bits from here on: the index of its key among the words; 0: it has none */
    /* Not for peers: the value of a key. Its stamp says nothing but which server of another kind has changed the key of
     * late, if one has: its origin. */
    JOURNAL_CORRECTS = 1 << 14,
    JOURNAL_FLAGS_END = 1 << 15
};

/* What a stamped record carries besides its bytes. All records of a group have the same stamp. */
struct journal_stamp {
    uint64_t origin;
    uint64_t stamp;
    uint64_t previous; /* the origin's stamp before it; 0: it is the first */
    int64_t wall_ms;   /* the time with which the command ran */
    union {
        uint64_t key_position; /* of the record of the same key before it; JOURNAL_NOWHERE: not known, or none */
        uint64_t seen;         /* of an eviction: the stamp of the key's last operation */
    };
    uint64_t mvcc; /* of what came from KeyDB; 0: it did not */
};
#define JOURNAL_NOWHERE UINT64_MAX

/* Three groups of cache lines. Commands that append nothing read only the first, so it does not move between
 * processors while others append. An append writes only the first line of the second. */
struct journal {
    /* --- read by every command, written when the journal is switched or somebody lags --- */
    CACHE_ALIGNED _Atomic bool on; /* atomic: switched with the gate owned, read with stripes held */
    _Atomic bool stamps;           /* atomic: likewise */
    _Atomic bool has_peers;        /* atomic: relaxed; likewise: somebody reads operations */
    _Atomic bool is_lagging;       /* atomic: relaxed; changed under the lock */
    _Atomic unsigned lag_flags;    /* atomic: relaxed; likewise, with it: the flags of the reader that lags */
    _Atomic bool wants_tending;    /* atomic: relaxed; journal_tend has something to do */
    _Atomic bool is_tended;        /* atomic: a thread is in journal_tend */
    struct journal_spill *spill;   /* const after init */
    /* const after start. on_lag is called with stripes and the lock held: it may use atomics only. on_lag_over is
     * called with neither held. */
    void (*on_lag)(bool lags);
    void (*on_lag_over)(void);

    /* --- of each append --- */
    CACHE_ALIGNED struct spinlock lock; /* rank LOCK_JOURNAL */
    struct journal_block *oldest GUARDED_BY(lock);
    struct journal_block *newest GUARDED_BY(lock);
    uint64_t end_offset GUARDED_BY(lock);       /* bytes of the stream appended so far */
    uint64_t unstreamed_bytes GUARDED_BY(lock); /* likewise, of records that take nothing of it */
    uint64_t nonce GUARDED_BY(lock);            /* the tail's; 0: none */
    int last_db GUARDED_BY(lock);               /* database of the last record; -1: the next record selects */
    unsigned stream_db GUARDED_BY(lock);        /* the database that is selected at the end of the stream */
    uint64_t lag_bound_offset GUARDED_BY(lock); /* no reader lags as long as the end is not beyond this offset */

    /* --- the rest: appends read some of it, and write it for a new block, without a tail and while they stamp --- */
    uint64_t retention_bytes GUARDED_BY(lock);
    uint64_t memory_bytes GUARDED_BY(lock); /* of all blocks, without the blobs they reference */
    /* Beyond it blocks go to the file, if a reader lets them; 0: no limit. */
    uint64_t memory_limit_bytes GUARDED_BY(lock);
    uint64_t free_position GUARDED_BY(lock);    /* where the next block begins, if there is none now */
    struct journal_tail *tail GUARDED_BY(lock); /* where blocks are made; NULL: in memory of the process */
    _Atomic uint64_t unkept_position;           /* atomic: relaxed; written under the lock */
    unsigned keepers GUARDED_BY(lock);          /* enum journal_keeper: on also without readers */
    unsigned reader_count GUARDED_BY(lock);
    uint64_t origin GUARDED_BY(lock);         /* of the stamps */
    uint64_t previous_stamp GUARDED_BY(lock); /* the last one that a record has; 0: none */
    struct stamp_clock clock GUARDED_BY(lock);
    struct list readers GUARDED_BY(lock);
    _Atomic uint64_t passing_bytes; /* atomic: relaxed; see journal_passing_bytes */
    /* Of the file: beyond it, or where the file system gets short, the reader furthest behind is lost; 0: no limit. */
    uint64_t spill_limit_bytes GUARDED_BY(lock);
    uint64_t spill_reserve_bytes GUARDED_BY(lock); /* what the file system has left at least */
    unsigned spilled_count GUARDED_BY(lock);       /* number of blocks in the file */
    uint64_t spilled_bytes GUARDED_BY(lock), spilled_total_bytes GUARDED_BY(lock); /* now; since the start */
    struct list in_memory GUARDED_BY(lock);                                        /* blocks, oldest first */
    struct list fetches GUARDED_BY(lock);                                          /* blocks to be read from the file */
    const struct journal_reader *calling GUARDED_BY(lock);                         /* its on_change runs; or NULL */
};

void journal_init(struct journal *journal);
void journal_fini(struct journal *journal); /* no readers may be left */

static inline bool journal_is_on(const struct journal *journal)
{
    return atomic_load_explicit(&journal->on, memory_order_relaxed);
}

/* While the journal is on: whether commands are to add operations to their effects. */
static inline bool journal_has_peers(const struct journal *journal)
{
    return atomic_load_explicit(&journal->has_peers, memory_order_relaxed);
}
void journal_set_peers(struct journal *journal, bool has_peers); /* with the gate owned */
/* Somebody reads what is not for peers, or may later read what is appended now. Any thread. */
bool journal_has_plain(struct journal *journal);

/* Appends all effects in one piece. Several effects of a group, or any with `transaction`, are put between MULTI and
 * EXEC. Returns the stream's offset behind them. Any thread; the changed keys' stripes are held. */
uint64_t journal_append(struct journal *journal, const struct effects *effects, bool transaction);
/* What journal_append_stamped is told of an effect, and what it tells. Of a group that of its first effect counts, but
 * for the positions. */
struct effect_stamp {
    int64_t wall_ms;       /* the time with which its command ran */
    uint64_t key_position; /* or `seen`; as in struct journal_stamp */
    /* A group that has its stamp from elsewhere, as it was done by a peer: its origin, which is not this one. 0: the
     * group takes a stamp of this origin. */
    uint64_t origin;
    uint64_t mvcc; /* likewise; as in struct journal_stamp */
    /* Given together with an origin, else set by the journal: */
    uint64_t stamp;    /* 0: it has none, as peers do not get it; so the journal says also of a given one */
    uint64_t previous; /* as in struct journal_stamp */
    /* Set by the journal: */
    uint64_t position; /* of its record; journal_reader_shown_position tells the same */
};
/* journal_append, while the journal stamps; `stamps`: one for each effect. Stamps of peers are heard
 * (journal_hear_stamp); those of one origin come in their order. */
uint64_t journal_append_stamped(struct journal *journal, const struct effects *effects, bool transaction,
                                struct effect_stamp *stamps);
/* A group of one effect, for all readers, without blobs, of this origin. */
struct journal_single {
    int64_t wall_ms;
    uint64_t stamp; /* set by the journal */
};
/* The same for effects that are such groups, one for one. *previous: the stamp before the first of theirs. */
uint64_t journal_append_singles(struct journal *journal, const struct effects *effects, struct journal_single *singles,
                                uint64_t *previous);
/* journal_append_stamped; in files all is one transaction, as it is true only together. */
uint64_t journal_append_whole(struct journal *journal, const struct effects *effects, struct effect_stamp *stamps);
static inline bool journal_is_stamping(const struct journal *journal)
{
    return atomic_load_explicit(&journal->stamps, memory_order_relaxed);
}
/* The journal begins to stamp, above `above` (0: nothing is known), as this origin; 0: it ends. With the gate owned. */
void journal_set_stamping(struct journal *journal, uint64_t origin, uint64_t above);
/* A stamp of another origin was heard (stamp_is_possible): ours are above it from here on. Any thread. */
void journal_hear_stamp(struct journal *journal, uint64_t stamp);
uint64_t journal_clock(struct journal *journal); /* the highest stamp that was given, heard or promised; any thread */
/* Returns the stamp that no later record has or is below; *position: the journal's end, where that became true; *last:
 * the last stamp of this origin before it, 0 if there is none. Any thread. */
uint64_t journal_promise_stamp(struct journal *journal, int64_t wall_ms, uint64_t *position, uint64_t *last);
/* The last stamp of this origin that a record has; 0: none. Any thread. */
uint64_t journal_last_stamp(struct journal *journal);

/* A command of another server's stream, byte for byte as it was received, with the database in which it runs. */
struct journal_received {
    struct slice bytes; /* all of them */
    /* Parts of `bytes` to be referenced instead of copied: each blob has exactly the bytes that are behind the first
     * `position` bytes. In ascending order; the caller's references. */
    const struct effect_blob *blobs;
    uint32_t blob_count;
    unsigned db;
    unsigned flags; /* enum journal_flag */
};
/* Appends commands of a master: nothing is added to them, as the offsets are the master's. Returns the offset behind
 * them. One thread at a time, with the stripes held that the commands change. */
uint64_t journal_append_received(struct journal *journal, const struct journal_received *commands, size_t count);
/* Appends one command for the readers of the stream alone (JOURNAL_MESSAGE), such as PING, which runs in any database:
 * no SELECT comes before it. The caller sees to it that the journal stays on. */
void journal_append_message(struct journal *journal, struct slice bytes);
/* The next record that journal_append appends selects its database, whatever was selected before. With the gate
 * owned. */
void journal_select_anew(struct journal *journal);
/* While somebody keeps it, the journal is on also without readers, and the retained bytes stay. With the gate owned. */
enum journal_keeper { JOURNAL_KEPT_FOR_REPLICAS = 1 << 0, JOURNAL_KEPT_FOR_PEERS = 1 << 1 };
void journal_keep(struct journal *journal, enum journal_keeper keeper, bool is_kept);

/* Any thread: the database that is selected at the end of the stream. */
unsigned journal_stream_db(struct journal *journal);
/* With the gate owned: the stream continues another one, in which this database is selected. */
void journal_set_stream_db(struct journal *journal, unsigned db);
/* Any thread, also between two appends of others. */
uint64_t journal_end_offset(struct journal *journal);
/* Bytes of all records so far, also of those that take nothing of the stream, with what they refer to. */
uint64_t journal_end_bytes(struct journal *journal);
uint64_t journal_end_position(struct journal *journal);
/* Records before this position may be missing in the tail; all records behind it are there. A thread that has seen the
 * effect of a record (under the lock of its stripe) sees a position that counts it. */
static inline uint64_t journal_unkept_position(const struct journal *journal)
{
    return atomic_load_explicit(&journal->unkept_position, memory_order_relaxed);
}
void journal_set_retention(struct journal *journal, uint64_t bytes);
void journal_set_memory_limit(struct journal *journal, uint64_t bytes);
/* reserve_bytes: what the file system of the file has to have left. */
void journal_set_spill_limit(struct journal *journal, uint64_t bytes, uint64_t reserve_bytes);

struct journal_stats {
    uint64_t begin_offset, end_offset; /* the retained part */
    /* memory_bytes: with the blobs that the journal alone keeps (journal_blob.h). */
    uint64_t memory_bytes, spilled_bytes, spilled_total_bytes;
};
void journal_stats(struct journal *journal, struct journal_stats *stats);
uint64_t journal_memory_bytes(struct journal *journal);
/* Any thread: what blocks that nobody needs any more take until they are freed, and copies for the file and from it.
 * The journal's memory is this and journal_memory_bytes. */
static inline uint64_t journal_passing_bytes(const struct journal *journal)
{
    return atomic_load_explicit(&journal->passing_bytes, memory_order_relaxed);
}

/* True if there are blocks that nobody needs any more, or if memory is above its limit. Costs a load. Then call
 * journal_tend in a thread that may wait for a disk; threads that append hold stripes and must not. journal_tend frees
 * blocks and moves blocks to the file, and returns at once if another thread is in it. It returns false if the file
 * could not be written; errno has the reason. */
static inline bool journal_wants_tending(const struct journal *journal)
{
    return atomic_load_explicit(&journal->wants_tending, memory_order_relaxed);
}
bool journal_tend(struct journal *journal);
/* True if more than so many bytes beyond the memory limit are in memory, and some of them are to go to the file. */
bool journal_is_crowded(struct journal *journal, uint64_t bytes);

enum journal_reader_flag {
    JOURNAL_READER_SPILLS = 1 << 0,
    /* Its thread serves others: journal_tend reads the file for it. When journal_reader_next or journal_reader_open_at
     * has started that (journal_wants_tending), the reader's thread sees to it that journal_tend is called soon. */
    JOURNAL_READER_NEVER_WAITS = 1 << 1,
    /* It reads nothing and keeps what is behind it; it is only moved. journal_reader_open_at does not look for a record
     * then. */
    JOURNAL_READER_PLACE = 1 << 2,
    /* Its lag limit only slows writers down for moments, which nobody needs to be told of. */
    JOURNAL_READER_PACED = 1 << 3
};

/* A position in the journal. One thread owns it, except where a comment says otherwise. */
struct journal_reader {
    struct list_node node; /* for the journal; guarded by its lock */
    struct journal *journal;
    struct journal_block *block;
    char *data;             /* the block's records, or their copy from the file */
    size_t position, shown; /* in `data`: of the next record; of the record returned last */
    bool began_with_block;  /* the reader's thread's: it reads its block from the first record on */
    struct buffer copy;
    size_t copy_bytes;        /* of it, in the journal's passing_bytes */
    unsigned flags;           /* written under the lock by the reader's thread */
    unsigned skips;           /* records with one of these flags are skipped */
    uint64_t lag_limit_bytes; /* guarded by the lock; 0: it holds no writers */
    bool is_lost;             /* the next records are gone; `error` is the errno with the reason */
    int error;
    bool seeks;                  /* it begins at `offset`, in a block that is being read from the file */
    struct journal_fetch *fetch; /* the block is being read from the file; NULL: it is not */
    _Atomic bool is_cut;         /* atomic: relaxed; set under the lock: the records behind its block are given up */
    bool told;                   /* guarded by the lock: on_change was called for that */
    /* What was fetched from the file is there, or the reader is lost: journal_reader_next tells. Called in the thread
     * that tends, with no lock held; not after journal_reader_close has returned. May be NULL. */
    void (*on_change)(struct journal_reader *reader);
    _Atomic uint64_t offset; /* atomic: relaxed; its offset in the stream */
};

/* At the end of the journal, with the gate owned: later records will be read. The next record selects. */
void journal_reader_open(struct journal_reader *reader, struct journal *journal);
/* At the begin of a retained record, while the journal is on; any thread. False: no record begins there, or it is gone.
 * The database is the one selected there. The flags are those of journal_reader_set. With JOURNAL_READER_NEVER_WAITS
 * and an offset in the file it is true at first; the reader is lost (EINVAL) if no record turns out to begin there. */
must_check bool journal_reader_open_at(struct journal_reader *reader, struct journal *journal, uint64_t offset,
                                       unsigned flags, void (*on_change)(struct journal_reader *reader));
/* Likewise, with the block that holds this position: the reader is given the records before the position, too. Any
 * position that is retained will do. */
must_check bool journal_reader_open_near(struct journal_reader *reader, struct journal *journal, uint64_t position,
                                         unsigned flags, void (*on_change)(struct journal_reader *reader));
/* Sets the kind of reader and the records to skip: enum journal_reader_flag, enum journal_flag. At first both are 0. */
void journal_reader_set(struct journal_reader *reader, unsigned flags, unsigned skips);
/* Writers wait when it is this far behind; 0: they don't. Any thread, while the reader is open. */
void journal_reader_set_lag_limit(struct journal_reader *reader, uint64_t bytes);
/* Goes on to a later offset without looking at the records before it; they may be freed. The reader is a place for a
 * later journal_reader_open_at: it reads no records. An offset before its own, or behind the end, changes nothing. */
void journal_reader_move(struct journal_reader *reader, uint64_t offset);
/* Likewise, to the block that holds this position. */
void journal_reader_move_near(struct journal_reader *reader, uint64_t position);
/* Any thread if other readers are open or the journal is kept. Otherwise this switches the journal off: with the gate
 * owned. */
void journal_reader_close(struct journal_reader *reader);

/* A record as a reader sees it. Valid until the next call with this reader. */
struct journal_view {
    uint64_t offset; /* offset of its first byte in the stream */
    uint64_t size;   /* size of its RESP bytes; 0 for JOURNAL_AOF_ONLY */
    unsigned db;
    unsigned flags;                  /* enum journal_flag */
    struct slice bytes;              /* RESP bytes without the blobs */
    const struct effect_blob *blobs; /* the place of each is behind the first `position` bytes */
    uint32_t blob_count;
    const struct journal_stamp *stamp; /* NULL: it has none */
};
static inline unsigned journal_view_key_index(const struct journal_view *view) /* of a stamped record */
{
    return view->flags >> JOURNAL_KEY_SHIFT;
}

/* False: no more records now (with JOURNAL_READER_NEVER_WAITS perhaps because they are fetched from the file), or never
 * again if the reader is lost. Other readers may wait for a disk if the records are in the file. */
must_check bool journal_reader_next(struct journal_reader *reader, struct journal_view *view);
void journal_view_append(const struct journal_view *view, struct buffer *buffer); /* all RESP bytes */

/* The reader's position, or that of the record returned last. Its own thread. False: unknown, as the reader is
 * reading from the file. */
must_check bool journal_reader_position(const struct journal_reader *reader, uint64_t *position);
must_check bool journal_reader_shown_position(const struct journal_reader *reader, uint64_t *position);
/* True: the reader was given all records before this position. Its own thread. While it reads from the file that is
 * known only at the begin and at the end of a block. */
bool journal_reader_is_past(const struct journal_reader *reader, uint64_t position);
/* The reader's offset: behind all records that it was given or has skipped. Any thread. */
static inline uint64_t journal_reader_offset(const struct journal_reader *reader)
{
    return atomic_load_explicit(&reader->offset, memory_order_relaxed);
}
