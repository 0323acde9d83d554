/* The thread that appends the journal to the append only file, syncs it, and changes which files it consists of. No
 * worker waits for a disk: what it has not got to is kept by the journal.
 *
 *     journal -> buffer -> the last increment -> synced
 *        `read` <= end     `written` <= read    `synced` <= written        offsets in the journal's stream
 *
 * It alone touches the files while it runs. What others want of it are orders, which it takes between two writes. Only
 * who calls aof_writer_settle, or aof_writer_stop before it has ended, waits for it.
 *
 * What it has not got to survives the process in the journal's tail (store/journal_tail.h), a file beside the others:
 * the writer says in it from where on it is needed. Who starts next appends that to the last increment (aof_tail.h). */
#pragma once

#include "base/compiler.h"
#include "persist/aof_set.h"
#include "store/journal.h"

#include <stdbool.h>
#include <stdint.h>

/* --- the gate is owned, or the workers have ended --- */

/* From the journal's end on everything goes into `file`, which it takes over and which has `size` bytes. A temporary
 * one (of a first rewrite) counts for nothing yet, until it has become an increment. */
void aof_writer_start(struct journal *journal, struct aof_set *files, struct file *file, uint64_t size,
                      bool is_temporary);
/* It is to write and sync what the journal has by now, and to end; then worker 0 is woken. `counts`: replies rely on
 * that. A temporary file gets no more. Nobody waits. */
void aof_writer_end(bool counts);
/* Waits until it has ended; it is told to if it was not. The file is closed, the others are the caller's again. False:
 * not everything is on the disk, the log says why. */
must_check bool aof_writer_stop(void);
/* Waits until everything is written; false: it cannot be written. */
must_check bool aof_writer_settle(void);
/* What comes from now on goes into a new increment. */
void aof_writer_split(void);
bool aof_writer_runs(void); /* any thread: as it was last */

/* --- any thread --- */

/* Files that are not needed any more go soon, unless aof-disable-auto-gc says that they stay. When that is done,
 * aof_hold_update is called. */
void aof_writer_drop_history(void);
bool aof_writer_is_dropping(void);
bool aof_writer_is_ending(void);        /* it was told to: aof_writer_stop would wait */
uint64_t aof_writer_end_position(void); /* in the journal: it has to write what comes before; UINT64_MAX: everything */
void aof_writer_sleep(uint32_t us);     /* before each write, for tests: as if the disk were slow. 0: not */
void aof_writer_fail_syncs(bool fail);  /* those of the file that is written to, for tests: EIO */
void aof_writer_poke(void);             /* there may be something new: in the journal, among the options */
void aof_writer_hurry(void);            /* somebody waits for it */
/* The split that was asked for has failed: the base that is being written has no use. */
bool aof_writer_split_failed(void);
void aof_writer_forget_split(void); /* no base comes for it */

/* A base with everything up to the split (or to the start, if the file is temporary) is on the disk: it is to take its
 * place. `done` is called by the writer's thread. */
struct aof_commit {
    const char *temp_base;      /* file names, in the folder; they stay until `done` */
    const char *temp_increment; /* NULL: there was a split, or there is no writer */
    bool is_rdb;
    void (*done)(bool good);
};
/* False: the writer that began with that base has ended, or is about to, and `done` is not called. What it has written
 * since then is in no base, so this one must not take the place of anything. */
must_check bool aof_writer_commit(const struct aof_commit *commit);
/* The same without a writer: nothing is kept beside the base. Any thread that has the files to itself. */
must_check bool aof_commit_alone(struct aof_set *files, const struct aof_commit *commit);

/* In the journal: what replies may rely on. Under `always` it is what is synced, but while no-appendfsync-on-rewrite
 * waives that; else what is written. */
uint64_t aof_acked_position(void);
bool aof_writer_fails(void);      /* the last write */
uint64_t aof_synced_offset(void); /* of the journal: everything before is on the disk */
struct aof_writer_stats {
    uint64_t size_bytes;      /* of base and increments */
    uint64_t rewritten_bytes; /* the same at the start, or when they were rewritten last */
    uint64_t waiting_bytes;   /* in the journal, not written */
    uint64_t buffer_bytes;    /* memory of its own */
    uint64_t syncs, slow_syncs;
    bool is_syncing;
    bool is_well;           /* the last write and sync */
    bool needs_rewrite;     /* a sync failed: only a new base makes it well again */
    uint32_t vain_rewrites; /* that were made for that since a sync worked last, and after which one failed again */
    int64_t sync_failed_s;  /* when the last one failed */
};
void aof_writer_stats(struct aof_writer_stats *stats);
void aof_writer_stats_reset(void);
uint64_t aof_writer_memory_bytes(void); /* any thread: memory of its own */
/* What clients hear while COMMAND_BLOCK_UNWRITTEN is set, with its code. */
void aof_writer_denial(char *text, size_t size);
