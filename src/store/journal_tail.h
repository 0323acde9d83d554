/* The end of the journal, kept where it outlives the process: blocks of the journal that lie in a file which is mapped
 * shared. What a thread has stored there is the kernel's, so it is still there when the process is killed: nothing is
 * copied for that, and no system call is made. The next process finds in it what no other file has got yet.
 *
 *     page 0      head: a random number (`nonce`) of this use of the file, the machine's boot, two places
 *     slot 0 ...  head: nonce, where in the journal it begins, how much is used; then a block's records
 *
 * A place says: the increment of that number has, in its first `file_bytes` bytes, everything that stands in the
 * journal before `position`. The two are written in turn, so that one is always whole.
 *
 *  1. A slot is used again only when the place is behind it.
 *  2. A record counts if it is marked as ready, and its checksum is right: after a loss of power there may be anything.
 *  3. One that is not ready was being copied when the process was killed. Nobody has heard of it, and whoever was
 *     appended behind it did not touch its keys, as these were still locked. So it is left out, but only while the
 *     machine has not been started anew: else its mark may just not have come to the disk, and everything ends there.
 *  4. What does not stand here (a block for which there was no slot, bulks that are referenced) counts as unkept
 *     (journal_unkept_position): who replies waits until it is written.
 *
 * Room on the disk is there before a slot is used (fallocate), and its pages are writable, so that who appends meets
 * neither a full disk nor, with few exceptions, a fault. */
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
    uint64_t file_number; /* of the increment; 0: none, the tail is of no use */
    int64_t db;           /* that the file's first bytes leave selected; -1: none */
};

/* A new file with some slots. Fails, with errno, where this file system has no shared mappings, or no room. */
must_check enum status journal_tail_create(struct journal_tail **tail, const char *path);
/* The gate is owned. From now on blocks are made in it, until journal_tail_leave: there it goes, as soon as no reader
 * needs its blocks; its file stays where it is. At most one at a time. */
void journal_tail_enter(struct journal *journal, struct journal_tail *tail);
void journal_tail_leave(struct journal *journal);

/* --- the thread that writes the increments; not under a lock, these may wait for a disk --- */

void journal_tail_set_place(struct journal_tail *tail, const struct journal_place *place);
/* Slots that the place has passed are made ready again; there will be more of them if there were not enough. False:
 * there can't be; errno says why. Told once, until it goes well again. */
bool journal_tail_look(struct journal *journal, struct journal_tail *tail);

struct journal_tail_stats {
    uint64_t bytes;  /* of the file */
    uint64_t unkept; /* blocks for which there was no room */
};
void journal_tail_stats(const struct journal_tail *tail, struct journal_tail_stats *stats);

/* --- reading what a process has left --- */

struct journal_tail_reader;

/* *error, if it is no use: why, in words. STATUS_NOT_FOUND: there is none. */
must_check enum status journal_tail_open(struct journal_tail_reader **reader, const char *path, const char **error);
void journal_tail_close(struct journal_tail_reader **reader);
const struct journal_place *journal_tail_place(const struct journal_tail_reader *reader);

enum journal_tail_item {
    JOURNAL_TAIL_RECORD,
    JOURNAL_TAIL_HOLE, /* it was not ready; the view has its flags */
    JOURNAL_TAIL_END
};
/* The next record from the place on. The view is valid while the reader is. */
must_check enum journal_tail_item journal_tail_next(struct journal_tail_reader *reader, struct journal_view *view);
