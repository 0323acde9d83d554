/* The tail of the journal, kept such that it outlives the process: blocks of the journal in a file that is mapped
 * shared. The kernel has what a thread has stored there, so it is still there when the process is killed; this needs no
 * copy and no system call. The next process finds there the records that no other file has yet.
 *
 *     page 0      head: a random number (`nonce`) of this use of the file, the machine's boot, two places
 *     slot 0 ...  head: nonce, begin position in the journal, bytes used; then a block's records
 *
 * A place says: the increment with this number has, in its first `file_bytes` bytes, all records of the journal before
 * `position`. The two places are written in turn, so one of them is always complete.
 *
 *  1. A slot is used again only when the place is behind it.
 *  2. A record counts if it is marked as ready and its checksum is right: after a power failure its memory may have any
 *     contents.
 *  3. A record that is not ready was being copied when the process was killed. No client knows of it, and records
 *     behind it did not touch its keys, since these were still locked. So it is skipped, but only if the machine has
 *     not been restarted: otherwise its mark may be missing on the disk, and reading ends there.
 *  4. Records that are not in the tail (a block without a slot, referenced bulk strings) count as unkept
 *     (journal_unkept_position): replies wait until they are written.
 *
 * Room on the disk is allocated before a slot is used (fallocate), and its pages are writable. So threads that append
 * meet neither a full disk nor, with few exceptions, a page fault. */
#pragma once

#include "base/compiler.h"
#include "base/status.h"
#include "store/journal.h"

#include <stdbool.h>
#include <stdint.h>

struct journal_tail;

struct journal_place {
    uint64_t position; /* in the journal, see journal_end_position */
    uint64_t file_bytes;
    uint64_t file_number; /* number of the increment; 0: none, the tail cannot be used */
    int64_t db;           /* database selected at the end of these bytes; -1: none */
};

/* Creates a file with some slots. Fails with errno if the file system has no shared mappings or no room. */
must_check enum status journal_tail_create(struct journal_tail **tail, const char *path);
/* With the gate owned. Effects that are appended from now on are in the tail, until journal_tail_leave; later ones are
 * not, also not in the block that was the newest. A journal has at most one tail at a time. */
void journal_tail_enter(struct journal *journal, struct journal_tail *tail);
void journal_tail_leave(struct journal *journal); /* nothing if it has none */
/* With the gate owned, after journal_tail_leave; in between the thread that writes the increments still uses the tail,
 * and has ended now. The tail goes as soon as no reader needs its blocks; its file stays. *tail becomes NULL; it may be
 * that already. */
void journal_tail_destroy(struct journal *journal, struct journal_tail **tail);

/* --- called by the thread that writes the increments; not under a lock, since these may wait for a disk --- */

void journal_tail_set_place(struct journal_tail *tail, const struct journal_place *place);
/* Makes slots that the place has passed ready again, and adds slots if there were not enough. False: it cannot; errno
 * has the reason. Reports this once, until it succeeds again. */
bool journal_tail_look(struct journal *journal, struct journal_tail *tail);

struct journal_tail_stats {
    uint64_t bytes;  /* size of the file */
    uint64_t unkept; /* blocks for which there was no slot */
};
void journal_tail_stats(const struct journal_tail *tail, struct journal_tail_stats *stats);

/* --- reading the tail of an earlier process --- */

struct journal_tail_reader;

/* On failure *error says why the tail cannot be used. STATUS_NOT_FOUND: there is no file. */
must_check enum status journal_tail_open(struct journal_tail_reader **reader, const char *path, const char **error);
void journal_tail_close(struct journal_tail_reader **reader);
const struct journal_place *journal_tail_place(const struct journal_tail_reader *reader);

enum journal_tail_item {
    JOURNAL_TAIL_RECORD,
    JOURNAL_TAIL_HOLE, /* it was not ready; the view has its flags */
    JOURNAL_TAIL_END
};
/* Returns the next record from the place on. The view is valid as long as the reader. */
must_check enum journal_tail_item journal_tail_next(struct journal_tail_reader *reader, struct journal_view *view);
