/* Long strings that snapshots need as they were (data/former_string.h), while commands go on changing them in place.
 *
 * A snapshot has a reference to the blob, as a key has, so whoever replaces, deletes or renames a string need not know.
 * Only a change in place does: it may write to a blob that nobody has but one key and snapshots, once the pages in its
 * way are kept. So it tells which bytes it is going to write (change_edit_part, change_edit_also). A blob that others
 * have, too (another key, a reply, the journal), is copied then, with or without snapshots.
 *
 *     long_string_use        it will be needed as it is now
 *     long_string_edit       these bytes will be written
 *     long_string_give       the snapshot's thread takes the next piece
 *     long_string_leave      the snapshot has it
 *
 * Locks. A string has a lock of its own, not its stripe: the thread holds it while it copies a piece, and whoever edits
 * it while he keeps pages. He writes behind that, as nobody reads what he writes to. The list is guarded by `lock`, and
 * so are the uses of a string; they change under both. A new use comes from a key that has the blob, under its stripe:
 * never during an edit. */
#pragma once

#include "base/spinlock.h"
#include "base/table.h"
#include "data/former_string.h"
#include "store/access.h"

enum { LONG_STRING_BYTES = 1 << 20 }; /* shorter ones are copied when they change: it takes 0.1 ms */

struct long_use; /* of a string, by a snapshot for a key */

struct long_strings {
    struct spinlock lock; /* rank LOCK_LARGE */
    struct table by_blob GUARDED_BY(lock);
    /* So much more memory is kept for this snapshot; any thread, under a stripe's lock or none. */
    void (*kept)(struct store *store, unsigned snapshot, int64_t bytes);
};

void long_strings_init(struct long_strings *strings,
                       void (*kept)(struct store *store, unsigned snapshot, int64_t bytes));
void long_strings_fini(struct long_strings *strings);

/* False: no snapshot has it as a long string. */
static inline bool long_string_may_be(const struct store *store, const struct blob *blob)
{
    return UNLIKELY(atomic_load_explicit(&store->long_string_count, memory_order_relaxed) != 0) &&
           blob->capacity >= LONG_STRING_BYTES;
}

static inline bool long_string_suits(const struct entry *entry)
{
    const struct blob *blob = entry_blob(entry);

    return blob != NULL && blob->size >= LONG_STRING_BYTES;
}
/* The entry's stripe is held. Acquires the blob. */
struct long_use *long_string_use(struct store *store, const struct stripe *stripe, const struct entry *entry,
                                 unsigned snapshot);

/* --- commands, under the stripe of the key that has the blob --- */

/* False: others have the blob, too, or no snapshot has it, so a change must copy it. True: it has at least this
 * capacity (and may have moved); `written` bytes from `offset` on may be written to, and those between its size and the
 * new one. */
must_check bool long_string_edit_slow(struct store *store, struct blob **blob, size_t capacity, size_t new_size,
                                      size_t offset, size_t written);
static inline must_check bool long_string_edit(struct store *store, struct blob **blob, size_t capacity,
                                               size_t new_size, size_t offset, size_t written)
{
    return long_string_may_be(store, *blob) && long_string_edit_slow(store, blob, capacity, new_size, offset, written);
}
void long_string_lose_slow(struct store *store, struct blob *blob);
/* The key is about to give up its reference: if it is the last key, the snapshots count the blob. */
static inline void long_string_lose(struct store *store, struct blob *blob)
{
    if (long_string_may_be(store, blob))
        long_string_lose_slow(store, blob);
}

/* --- the snapshot's thread, under no lock --- */

size_t long_string_size(const struct long_use *use); /* as at the moment */
/* Appends the next piece. False: it was the last one. */
must_check bool long_string_give(struct store *store, struct long_use *use, struct buffer *to);
void long_string_leave(struct store *store, struct long_use **handle); /* leaves NULL */
