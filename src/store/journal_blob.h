/* Blobs that the journal refers to may be values of keys as well. Such a blob counts as memory of the data, and as
 * memory of the journal only from when its key has gone or has another value. Any thread that has a reference. */
#pragma once

#include "base/blob.h"

/* Bits of blob.flags. */
enum journal_blob_flag {
    BLOB_IN_KEYSPACE = 1 << 0, /* it is the value of a key */
    BLOB_IN_JOURNAL = 1 << 1   /* a record refers to it */
};

/* Of blobs that the journal keeps and no key. */
uint64_t journal_blob_bytes(void);

void journal_blob_note_journaled(struct blob *blob); /* a record has a reference */
void journal_blob_release(struct blob **blob);       /* that of a record */
void journal_blob_note_value(struct blob *blob);     /* a key has a reference */

void journal_blob_release_shared(struct blob **blob);
/* That of a key. */
static inline void journal_blob_release_value(struct blob **blob)
{
    if (LIKELY(blob_is_exclusive(*blob)))
        blob_release(blob);
    else
        journal_blob_release_shared(blob);
}
