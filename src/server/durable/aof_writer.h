/* The thread that appends the journal to the append-only file, syncs it, and changes the set of its files. No worker
 * waits for a disk: the journal keeps what is not yet written.
 *
 *     journal -> buffer -> the last increment -> synced
 *        `read` <= end     `written` <= read    `synced` <= written        offsets in the journal's stream
 *
 * Only this thread touches the files while it runs. Other threads give it orders, which it carries out between two
 * writes. Only callers of aof_writer_settle, and of aof_writer_stop before it has ended, wait for it.
 *
 * Effects that are not yet written survive the process in the journal's tail (store/journal_tail.h), a file beside the
 * others. The writer notes there from which position on it is needed. The next process appends that part to the last
 * increment (aof_tail.h). */
#pragma once

#include "base/compiler.h"
#include "persist/aof_set.h"
#include "store/journal.h"

#include <stdbool.h>
#include <stdint.h>

/* --- the gate is owned, or the workers have ended --- */

/* Writes everything from the journal's end on into `file`, which it takes over and which has `size` bytes. A temporary
 * file (of a first rewrite) does not count until it has become an increment. */
void aof_writer_start(struct journal *journal, struct aof_set *files, struct file *file, uint64_t size,
                      bool is_temporary);
/* Tells it to write and sync everything that is in the journal by now, and to end; then it wakes worker 0. `counts`:
 * replies rely on this. A temporary file gets no more data. The caller does not wait. */
void aof_writer_end(bool counts);
/* Waits until it has ended, and tells it to end if necessary. The file is closed, and the caller owns the set of files
 * again. False: not everything is on the disk; the log has the reason. */
must_check bool aof_writer_stop(void);
/* Waits until everything is written; false: it cannot be written. */
must_check bool aof_writer_settle(void);
/* From now on effects go into a new increment. */
void aof_writer_split(void);
bool aof_writer_runs(void); /* any thread: the latest state */

/* --- any thread --- */

/* Removes files that are not needed any more soon, unless aof-disable-auto-gc keeps them. Afterwards aof_hold_update is
 * called. */
void aof_writer_drop_history(void);
bool aof_writer_is_dropping(void);
bool aof_writer_is_ending(void); /* it was told to end: aof_writer_stop would wait */
/* The position in the journal up to which it has to write; UINT64_MAX: everything. */
uint64_t aof_writer_end_position(void);
uint64_t aof_writer_end_unkept(void);  /* likewise, if effects that the tail has count as written */
void aof_writer_sleep(uint32_t us);    /* for tests: sleeps before each write, as on a slow disk; 0: off */
void aof_writer_fail_syncs(bool fail); /* for tests: syncs of the current file fail with EIO */
void aof_writer_set_lag_limit(void);   /* call it when the option has changed; with the gate owned */
void aof_writer_poke(void);            /* call it when the journal, or an option, may have changed */
void aof_writer_hurry(void);           /* call it when a client or thread waits for the writer */
/* The split that was asked for has failed: the base that is being written is useless. */
bool aof_writer_split_failed(void);
void aof_writer_forget_split(void); /* the base for it was given up */

/* A base with everything up to the split (or to the start, if the file is temporary) is on the disk and becomes the
 * base of the set. The writer's thread calls `done`. */
struct aof_commit {
    const char *temp_base;      /* file names in the folder, valid until `done` */
    const char *temp_increment; /* of a writer that began with a temporary file; others do not look at it */
    bool is_rdb;
    void (*done)(bool good);
};
/* False: the writer that began with that base has ended, or is about to end, and `done` is not called. No base has what
 * that writer has written since, so this base must not replace anything. */
must_check bool aof_writer_commit(const struct aof_commit *commit);
/* The same without a writer: no increment is kept. Any thread that has the files to itself. */
must_check bool aof_commit_alone(struct aof_set *files, const struct aof_commit *commit);

/* The position in the journal that replies may rely on. With `appendfsync always` the synced position, unless
 * no-appendfsync-on-rewrite waives it; otherwise the written position. */
uint64_t aof_acked_position(void);
uint64_t aof_synced_position(void); /* in the journal; what is before is on the disk. 0 while the first base is made */
bool aof_writer_fails(void);        /* the last write has failed */
uint64_t aof_synced_offset(void);   /* offset in the journal: everything before is on the disk */
struct aof_writer_stats {
    uint64_t size_bytes;      /* of base and increments */
    uint64_t rewritten_bytes; /* size at the start or after the last rewrite */
    uint64_t waiting_bytes;   /* in the journal, not yet written */
    uint64_t buffer_bytes;    /* its own memory */
    uint64_t syncs, slow_syncs;
    bool is_syncing;
    bool is_well;       /* the last write and sync succeeded */
    bool needs_rewrite; /* a sync has failed: only a new base repairs it */
    /* Rewrites for this reason since the last good sync, each followed by another failed sync. */
    uint32_t vain_rewrites;
    int64_t sync_failed_s; /* time of the last failed sync */
};
void aof_writer_stats(struct aof_writer_stats *stats);
void aof_writer_stats_reset(void);      /* in an exclusive section */
uint64_t aof_writer_memory_bytes(void); /* any thread: its own memory */
/* The error for clients while COMMAND_BLOCK_UNWRITTEN is set, with its code. */
void aof_writer_denial(char *text, size_t size);
