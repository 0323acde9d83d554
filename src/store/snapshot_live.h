/* A snapshot of data that goes on changing: no fork, and no copy of the memory.
 *
 * At the gate only a number is noted for each stripe: how far it is written, nothing. The snapshot's thread then visits
 * stripe by stripe, some keys at a time, under the stripe's lock. Meanwhile, a change of a key that is not written yet
 * leaves the key's old state first (change_begin), in a queue, from which the thread visits it soon. So each key of
 * the moment is visited exactly once: in its place, or as it was left.
 *
 * Marks. An entry with the snapshot's bit in its flags (entry.h) is not of the moment: its old state was left, or it
 * is new. The thread takes marks away as it passes. So between snapshots there are none, and entries that nobody
 * changes are not written to. A key is written if its place is below the stripe's: (database, table_scan_place).
 * Databases count as they were at the moment; SWAPDB changes the map, not the places.
 *
 * Of a snapshot that has some of the keys alone (snapshot_choice) a change asks whether it has this one: others are
 * marked, and nothing is left of them.
 *
 * FLUSHALL and FLUSHDB hand over tables that are not written to the end; the thread visits them and frees them. When
 * all keys are exchanged (access_exchange) the snapshot is cancelled.
 *
 * Large values (snapshot_large.h). A large collection is not copied: it stays where it is, and commands go on changing
 * it. What they change of it before it is written is kept, element by element; the thread takes it piece by piece, a
 * piece each time it holds the stripe. A string is shared with what was left, so only a change in place copies it; not
 * even that copies a long one: it keeps pages (snapshot_string.h). Deadlines of members are kept likewise, one by one.
 *
 * Memory. What was left and is not visited yet takes memory. Beyond a bound writers are asked to wait (store.on_crowd)
 * until it is less: writers slow down to the speed of the file. Flushed tables are no reason to wait, as they take what
 * they took before.
 *
 * Threads. Each of them is a member of the gate, and inside only while it holds a stripe. It writes to files and sleeps
 * outside. Places and marks are guarded by the stripe's lock, or the gate. Of several threads each has stripes of its
 * own, and a queue of what is left there, so that they meet nowhere but in the file. */
#pragma once

#include "base/gate.h"
#include "store/snapshot.h"

struct live_snapshot;
struct live_earlier;
struct table;

struct live_options {
    struct gate *gate;
    unsigned threads;                     /* 1 ... SNAPSHOT_THREADS_MOST: that write it (snapshot_each_by) */
    uint64_t kept_most;                   /* bytes; 0: no bound */
    const struct snapshot_choice *choice; /* stays until its end; NULL: all keys */
};

/* The gate is owned: the moment is now, the time is that of the access. NULL: as many as possible run (ENTRY_MARKS). */
struct live_snapshot *live_snapshot_begin(struct access *access, const struct live_options *options);
/* The thread that writes it, once, before any of the following; no other thread uses them. */
void live_snapshot_adopt(struct live_snapshot *live);
struct snapshot *live_snapshot_keys(struct live_snapshot *live); /* also whoever began it, before that thread starts */
struct live_snapshot *live_of_snapshot(struct snapshot *keys);   /* the other way round; keys are live */
/* It is written, or given up. Takes what is left of marks away. */
void live_snapshot_end(struct live_snapshot **handle);

/* Any thread: the rest is not visited. Behind its end it does nothing, until the next one begins. */
void live_snapshot_cancel(struct live_snapshot *live);
bool live_snapshot_is_cancelled(const struct live_snapshot *live);

/* A large value (large_suits) as it was before the moment, or a long string (long_string_suits) as it is. The entry is
 * a key's, or that of what takes a key back; the stripe guards it, and is held, or the gate is owned. The steps, which
 * are taken over, are those of undos (store/undo_priv.h), the newest one at the end. Once for each value. */
struct live_earlier *live_leave_earlier(struct live_snapshot *live, const struct stripe *stripe, unsigned db,
                                        const struct entry *entry, struct buffer *steps);
/* The snapshot's thread, before it visits the keys: begin, elements, deadlines, end, as of a key's. It is gone then.
 * NULL: nobody wants it. The visitor sees what is expired. */
void live_visit_earlier(struct live_snapshot *live, struct live_earlier **handle,
                        const struct snapshot_visitor *visitor);

/* What it costs; any thread, also behind its end, until the next one begins. */
struct live_costs {
    uint64_t kept_bytes, kept_peak_bytes; /* now, and at most */
    uint64_t kept_keys;                   /* old states that were left so far */
    uint64_t held_us;                     /* the longest time for which a stripe was held */
    uint64_t waited_us;                   /* the longest one for which somebody waited; he may have come later */
    uint64_t slowed_us;                   /* for so long writers waited, in all */
};
struct live_costs live_snapshot_costs(const struct live_snapshot *live);
/* Of all snapshots, with an estimate for flushed databases, which the costs leave out; any thread. */
uint64_t live_kept_bytes(const struct store *store);

/* --- for access.c, access_walk.c and store.c; the stripe is held, or the gate owned --- */

void live_note_before(struct change *change);  /* the entry is still complete */
void live_note_version(struct change *change); /* the same, where only the version changes; no live_note_after */
void live_note_after(const struct change *change);
/* The gate is owned: tables of a database are about to be handed over. */
void live_note_flush(struct store *store);
/* What was in the stripe's table of this database is in `table` now. True: it is still needed, and `release` is called
 * with `argument` when it is not any more, in another thread. */
must_check bool live_take_table(struct store *store, const struct stripe *stripe, unsigned db,
                                const struct table *table, void (*release)(void *argument), void *argument);
void live_note_swap(struct store *store, unsigned a, unsigned b);
void live_forsake(struct store *store); /* all keys are exchanged: the snapshots end without them */
void live_destroy(struct store *store); /* none runs */
