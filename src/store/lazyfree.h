/* Freeing values. A small value is freed at once. Freeing a large one takes long and makes system calls, and so does
 * waking a background thread. Neither is done while a stripe is held: right after the release the value is freed or
 * handed over. The reason decides which (enum free_reason). Only scripts, which hold their stripes for long in any
 * case, do it at once.
 *
 * What was handed over and is not freed yet is memory that nobody can see any more. Its bytes are estimated, so that
 * maxmemory need not be kept by evicting or refusing once more what is about to be free (lazyfree_pending_bytes). And
 * they are bounded: beyond a quarter of used memory (and 64 MiB) who makes garbage frees it himself, so that clients
 * that create and delete without pause do not outrun the thread. The values of a flushed database are not bounded:
 * they were there before, and end with it. */
#pragma once

#include "store/access.h"

/* Frees the entry's value and the deadlines of its members; the entry itself stays. Its stripe is held. */
void lazyfree_of_value(struct access *access, struct entry *entry, enum free_reason reason);
/* What a change has taken out of a value, as a value of its own, which no snapshot needs (data/nested.h). */
void lazyfree_of_part(const struct change *change, const struct value_ops *ops, struct value part);

/* Submits a background job that frees so many objects of about so many bytes; the job calls lazyfree_done with both
 * numbers when it has freed them. */
void lazyfree_submit(uint64_t objects, uint64_t bytes, void (*run)(void *argument), void *argument);
void lazyfree_done(uint64_t objects, uint64_t bytes);

/* About so many bytes of used memory wait for the background thread, or are being freed by it. Any thread. Read it
 * before you read used memory: what ends in between is then subtracted twice and not missed. */
uint64_t lazyfree_pending_bytes(void);

struct access_garbage *lazyfree_of_garbage(struct access_garbage *garbage); /* frees all of it; returns NULL */

/* Calls it with the access, after its stripes were released; of an access at the gate, after its next release. */
void lazyfree_call(struct access *access, void (*function)(struct access *access));
/* Call it after stripes were released. */
static inline void lazyfree_after_release(struct access *access)
{
    if (UNLIKELY(access->garbage != NULL))
        access->garbage = lazyfree_of_garbage(access->garbage);
}
