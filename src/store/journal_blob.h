/* Blobs that the journal refers to may be values of keys as well. Such a blob counts as memory of the data, and as
 * memory of the journal only while no key has it any more. blob.flags has the number of keys and of records that have
 * it: a renamed or copied key does not make it the journal's. Any thread that has a reference. */
#pragma once

#include "base/blob.h"

/* Of blobs that the journal keeps and no key: what they take in the allocator. */
uint64_t journal_blob_bytes(void);

/* A further reference, for a record. Of a blob that very many records have it is that of a copy. */
struct blob *journal_blob_acquire(struct blob *blob);
void journal_blob_release(struct blob **blob); /* that of a record */
/* The caller's reference becomes a key's. Of a blob that very many keys have it is given up for that of a copy. */
struct blob *journal_blob_take_value(struct blob *blob);

/* That of a key goes, under a lock. True: it was the last one; whoever calls destroys the blob, under no lock. */
must_check bool journal_blob_drop_value(struct blob *blob);

void journal_blob_release_shared(struct blob **blob);
/* That of a key. */
static inline void journal_blob_release_value(struct blob **blob)
{
    if (LIKELY(blob_is_exclusive(*blob)))
        blob_release(blob);
    else
        journal_blob_release_shared(blob);
}
