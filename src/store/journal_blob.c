#include "store/journal_blob.h"

/* The parts of blob.flags. The limits are so far below what fits that threads which count at once do not pass it. */
enum { ONE_RECORD = 1, ONE_KEY = 1 << 8, MOST_RECORDS = 1 << 7, MOST_KEYS = 1 << 23 };

/* Atomic: relaxed. A blob is counted while records have it and no key. Whoever changes its flags such that this begins
 * or ends changes the sum; the changes of flags have one order, so each is counted once. The sum may lag behind, and be
 * below zero for a moment. */
static _Atomic int64_t only_journaled_bytes; /* global: blobs do not know their journal */

uint64_t journal_blob_bytes(void)
{
    const int64_t bytes = atomic_load_explicit(&only_journaled_bytes, memory_order_relaxed);

    return bytes > 0 ? (uint64_t)bytes : 0;
}

static bool is_counted(uint32_t flags)
{
    return flags != 0 && flags < ONE_KEY;
}

/* All that the blob takes, as used memory counts it: a value of 8 KiB takes 10 KiB in the allocator. */
static void change_flags(struct blob *blob, uint32_t by)
{
    const uint32_t before = atomic_fetch_add_explicit(&blob->flags, by, memory_order_relaxed), after = before + by;
    int64_t bytes;

    if (is_counted(before) == is_counted(after))
        return;
    bytes = (int64_t)blob_footprint(blob);
    atomic_fetch_add_explicit(&only_journaled_bytes, is_counted(after) ? bytes : -bytes, memory_order_relaxed);
}

struct blob *journal_blob_acquire(struct blob *blob)
{
    struct blob *acquired;

    if (UNLIKELY(atomic_load_explicit(&blob->flags, memory_order_relaxed) % ONE_KEY >= MOST_RECORDS))
        acquired = blob_create_copy(blob_slice(blob));
    else
        acquired = blob_acquire(blob);
    change_flags(acquired, ONE_RECORD);
    return acquired;
}

void journal_blob_release(struct blob **blob)
{
    change_flags(*blob, -(uint32_t)ONE_RECORD);
    blob_release(blob);
}

struct blob *journal_blob_take_value(struct blob *blob)
{
    if (LIKELY(blob_is_exclusive(blob))) {
        atomic_store_explicit(&blob->flags, ONE_KEY, memory_order_relaxed);
        return blob;
    }
    if (UNLIKELY(atomic_load_explicit(&blob->flags, memory_order_relaxed) / ONE_KEY >= MOST_KEYS)) {
        struct blob *copy = blob_create_copy(blob_slice(blob));

        blob_release(&blob);
        return journal_blob_take_value(copy);
    }
    change_flags(blob, ONE_KEY);
    return blob;
}

bool journal_blob_drop_value(struct blob *blob)
{
    if (blob_is_exclusive(blob))
        return true;
    change_flags(blob, -(uint32_t)ONE_KEY);
    return atomic_fetch_sub_explicit(&blob->refs, 1, memory_order_acq_rel) == 1;
}

void journal_blob_release_shared(struct blob **blob)
{
    change_flags(*blob, -(uint32_t)ONE_KEY);
    blob_release(blob);
}
