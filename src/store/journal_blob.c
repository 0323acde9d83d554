#include "store/journal_blob.h"

/* Atomic: relaxed. A blob is counted while it has BLOB_IN_JOURNAL alone. Whoever changes its flags such that this
 * begins or ends changes the sum; the changes of flags have one order, so each is counted once. The sum may lag behind,
 * and be below zero for a moment. If a blob is in several records the first that goes ends the counting, and if it is
 * the value of several keys it begins with the first that goes. */
static _Atomic int64_t only_journaled_bytes; /* global: blobs do not know their journal */

static void add(const struct blob *blob, int sign)
{
    atomic_fetch_add_explicit(&only_journaled_bytes, sign * (int64_t)blob->capacity, memory_order_relaxed);
}

uint64_t journal_blob_bytes(void)
{
    const int64_t bytes = atomic_load_explicit(&only_journaled_bytes, memory_order_relaxed);

    return bytes > 0 ? (uint64_t)bytes : 0;
}

void journal_blob_note_journaled(struct blob *blob)
{
    if (atomic_fetch_or_explicit(&blob->flags, BLOB_IN_JOURNAL, memory_order_relaxed) == 0)
        add(blob, 1);
}

void journal_blob_release(struct blob **blob)
{
    if (atomic_fetch_and_explicit(&(*blob)->flags, ~(uint32_t)BLOB_IN_JOURNAL, memory_order_relaxed) == BLOB_IN_JOURNAL)
        add(*blob, -1);
    blob_release(blob);
}

void journal_blob_note_value(struct blob *blob)
{
    uint32_t before;

    if (blob_is_exclusive(blob)) {
        atomic_store_explicit(&blob->flags, BLOB_IN_KEYSPACE, memory_order_relaxed);
        return;
    }
    before = atomic_fetch_or_explicit(&blob->flags, BLOB_IN_KEYSPACE, memory_order_relaxed);
    if (before == BLOB_IN_JOURNAL)
        add(blob, -1);
}

void journal_blob_release_shared(struct blob **blob)
{
    const uint32_t both = BLOB_IN_JOURNAL | BLOB_IN_KEYSPACE;

    if (atomic_fetch_and_explicit(&(*blob)->flags, ~(uint32_t)BLOB_IN_KEYSPACE, memory_order_relaxed) == both)
        add(*blob, 1);
    blob_release(blob);
}
