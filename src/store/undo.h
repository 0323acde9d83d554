/* What takes back what an operation did to a key: exactly (type, value, order, deadlines of the key and its members),
 * and without a copy of what is large. Of a value that is changed in place it has what was touched: removed elements
 * with their places, old members, bytes. A value that is replaced or deleted is kept itself. Only what travels to
 * another key (RENAME) is copied.
 *
 *     undo_begin(access);
 *     ... commands ...
 *     undo = undo_take(access, db, key);     what they did to this key
 *     undo_end(access);
 *     ...
 *     undo_apply(access, db, key, undo);     the key is as it was
 *     key_undo_release(access, &undo);
 *
 * Undos of a key are applied from the newest to the oldest: each meets the key as it was right behind its operation.
 * Versions are not part of it. FLUSHALL, FLUSHDB and SWAPDB are not recorded, and forget what was.
 *
 * On an active node (STORE_KEEPS_ACTIVE) a command finds what has expired absent. An expired key stays until another
 * value takes its place, which the undo has then. Expired members are removed when a command looks the key up for a
 * change; if it changes nothing they come back, at undo_take or undo_end, and nobody but observers has heard of it. If
 * nothing is recorded they just go.
 *
 * All of it is the thread's that holds the key's stripe; an undo is guarded by that stripe. A thread records by one
 * access at a time. While nothing is recorded, a change costs a load and a branch. */
#pragma once

#include "store/access.h"

struct key_undo; /* counted without atomics */
struct undo_log;

void undo_begin(struct access *access); /* from here on changes are recorded, key by key */
void undo_end(struct access *access);   /* forgets what was not taken */
void undo_fini(struct access *access);  /* frees what is kept for the next recording; nothing is recorded */
static inline bool undo_is_recording(const struct access *access)
{
    return access->undo.is_on;
}

/* What was done to the key since undo_begin, or since it was taken last. NULL: nothing has changed. */
struct key_undo *undo_take(struct access *access, unsigned db, const struct key *key);
/* The same as bytes behind those in the buffer, whose size is a multiple of 8 before and after; returns how many. 0:
 * nothing has changed. They may be moved, and end once: as a key_undo, or dropped. */
size_t undo_take_image(struct access *access, unsigned db, const struct key *key, struct buffer *to);
size_t undo_take_image_of(struct access *access, struct undo_log *log, struct buffer *to); /* log: change->undo */
struct key_undo *key_undo_of_image(const void *image);
void key_undo_drop_image(struct access *access, const void *image);
bool key_undo_image_owns(const void *image); /* false: it need not be dropped */
/* The key becomes what it was; it may come or go. Silently: no event, no effect, no version, nobody is told, and it is
 * not recorded. Who has the only reference applies it once: a value that was kept becomes the key's. */
void undo_apply(struct access *access, unsigned db, const struct key *key, struct key_undo *undo);

/* True if it takes back changes of members, or (is_addition) additions to integers, and nothing else: then it does so
 * also if others like it have been done to the key since, to other members or to any integers. */
bool key_undo_is_apart(const struct key_undo *undo, bool is_addition);
/* True if what the key was does not depend on what it is: all that came behind need not be taken back before. */
bool key_undo_is_whole(const struct key_undo *undo);
/* Of one that takes back an addition, and nothing else. Returns the amount; *member has no data if it was added to the
 * key itself. */
int64_t key_undo_amount(const struct key_undo *undo, struct slice *member);
/* What takes back two such additions to the same integer. */
struct key_undo *key_undo_join(const struct key_undo *older, const struct key_undo *younger);
/* True if it takes back pushes on one end of a list, and nothing else. */
bool key_undo_is_push(const struct key_undo *undo);
struct key_undo *key_undo_acquire(struct key_undo *undo);
/* Accepts NULL. Leaves NULL. Large values are freed after the stripes are released. */
void key_undo_release(struct access *access, struct key_undo **undo);
uint64_t key_undo_bytes(const struct key_undo *undo); /* memory that it takes; of large values about */
