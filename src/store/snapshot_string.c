#include "store/snapshot_string.h"

#include "base/assert.h"
#include "base/mem.h"
#include "store/access_priv.h"
#include "store/journal_blob.h"
#include "store/snapshot_live_priv.h"

#include <time.h>

enum { SLEEP_NS = 50 * 1000 };

struct long_string {
    struct spinlock lock;  /* rank LOCK_STRING */
    struct blob *blob;     /* guarded by `lock`; while it is listed, const */
    struct long_use *uses; /* guarded by the list's lock; see the header */
    unsigned use_count;    /* likewise: so many references to the blob are theirs */
    unsigned editors;      /* guarded by the list's lock: who has found it, and waits for `lock` or has it */
};

struct long_use {
    struct long_string *string;  /* const */
    struct long_use *next;       /* as `uses` */
    struct former_string former; /* guarded by the string's lock */
    uint64_t noted_bytes;        /* of memory, of which the snapshot was told; guarded by the list's lock */
    uint64_t blob_bytes;         /* likewise, for the blob; 0: a key has it */
    unsigned snapshot;           /* const */
};

static uint64_t hash_of_blob(const void *blob)
{
    return (uint64_t)(uintptr_t)blob * UINT64_C(0x9E3779B97F4A7C15);
}

static uint64_t hash_of(const void *item)
{
    return hash_of_blob(((const struct long_string *)item)->blob);
}

static bool matches(const void *item, const void *blob)
{
    return ((const struct long_string *)item)->blob == blob;
}

void long_strings_init(struct long_strings *strings,
                       void (*kept)(struct store *store, unsigned snapshot, int64_t bytes))
{
    spinlock_init(&strings->lock, LOCK_LARGE);
    strings->kept = kept;
}

void long_strings_fini(struct long_strings *strings)
{
    spinlock_acquire(&strings->lock);
    assert(table_count(&strings->by_blob) == 0);
    table_clear(&strings->by_blob, NULL, NULL);
    spinlock_release(&strings->lock);
}

static struct long_string *find_locked(const struct long_strings *strings, const struct blob *blob)
{
    spinlock_assert_held(&strings->lock);
    return table_find(&strings->by_blob, hash_of_blob(blob), matches, blob);
}

static void list_locked(struct store *store, struct long_strings *strings, struct long_string *string)
{
    spinlock_assert_held(&strings->lock);
    table_insert(&strings->by_blob, hash_of(string), string, hash_of);
    atomic_fetch_add_explicit(&store->long_string_count, 1, memory_order_relaxed);
}

static void unlist_locked(struct store *store, struct long_strings *strings, const struct long_string *string)
{
    uint64_t *slot = table_find_slot(&strings->by_blob, hash_of(string), matches, string->blob);

    spinlock_assert_held(&strings->lock);
    (void)table_remove(&strings->by_blob, hash_of(string), slot);
    atomic_fetch_sub_explicit(&store->long_string_count, 1, memory_order_relaxed);
}

/* What it takes for the snapshot has become more, or less. */
static void note_locked(struct store *store, const struct long_strings *strings, struct long_use *use, uint64_t bytes)
{
    const int64_t more = (int64_t)(bytes - use->noted_bytes);

    spinlock_assert_held(&strings->lock);
    use->noted_bytes = bytes;
    if (more != 0)
        strings->kept(store, use->snapshot, more);
}

struct long_use *long_string_use(struct store *store, const struct stripe *stripe, const struct entry *entry,
                                 unsigned snapshot)
{
    struct long_strings *strings = live_long_strings(store);
    struct blob *blob = blob_acquire(entry_blob(entry)), *counted;
    struct long_use *use = mem_alloc_zero(sizeof(*use));

    stripe_assert_held(stripe);
    use->snapshot = snapshot;
    former_string_init(&use->former, blob->size);
    spinlock_acquire(&strings->lock);
    counted = journal_blob_take_value(blob);
    use->string = find_locked(strings, counted);
    if (use->string == NULL) {
        use->string = mem_alloc_zero(sizeof(*use->string));
        spinlock_init(&use->string->lock, LOCK_STRING);
        use->string->blob = counted;
        list_locked(store, strings, use->string);
    }
    use->next = use->string->uses;
    use->string->uses = use;
    use->string->use_count++;
    spinlock_release(&strings->lock);
    return use;
}

/* ------------------------------------------------------------------------------------------------------ commands -- */

/* Nobody but one key, whose stripe is held, and snapshots have the blob: only they can change that, and the latter only
 * under the list's lock. */
static bool is_of_one_key_locked(const struct long_string *string)
{
    return atomic_load_explicit(&string->blob->refs, memory_order_acquire) == 1 + string->use_count;
}

/* No key will have the blob any more. */
static void count_blob_locked(struct store *store, const struct long_strings *strings, struct long_string *string)
{
    for (struct long_use *use = string->uses; use != NULL; use = use->next) {
        if (use->blob_bytes != 0)
            continue;
        use->blob_bytes = blob_footprint(string->blob);
        strings->kept(store, use->snapshot, (int64_t)use->blob_bytes);
    }
}

/* NULL: the blob cannot be changed in place. Else it is kept in memory until the editor has ended. */
static struct long_string *begin_edit(struct store *store, struct long_strings *strings, const struct blob *blob)
{
    struct long_string *string;

    spinlock_acquire(&strings->lock);
    string = find_locked(strings, blob);
    if (string != NULL && !is_of_one_key_locked(string)) {
        count_blob_locked(store, strings, string);
        string = NULL;
    }
    if (string != NULL)
        string->editors++;
    spinlock_release(&strings->lock);
    return string;
}

/* The string's lock is held: no snapshot uses the blob meanwhile, nor leaves it. */
static void grow_locked(struct store *store, struct long_strings *strings, struct long_string *string, size_t capacity)
{
    const bool is_listed = string->use_count != 0;
    struct blob *blob = string->blob;
    bool grown;

    spinlock_assert_held(&string->lock);
    if (is_listed) { /* another blob may come to its address */
        spinlock_acquire(&strings->lock);
        unlist_locked(store, strings, string);
        spinlock_release(&strings->lock);
    }
    grown = blob_try_grow_shared(&blob, capacity);
    assert(grown); /* the caller has bounded the size */
    string->blob = blob;
    if (is_listed) {
        spinlock_acquire(&strings->lock);
        list_locked(store, strings, string);
        spinlock_release(&strings->lock);
    }
}

static void keep_locked(struct long_string *string, size_t offset, size_t size)
{
    spinlock_assert_held(&string->lock);
    for (struct long_use *use = string->uses; use != NULL; use = use->next)
        former_string_keep(&use->former, string->blob->data, offset, size);
}

static void end_edit(struct store *store, struct long_strings *strings, struct long_string *string)
{
    bool is_last;

    spinlock_acquire(&strings->lock);
    for (struct long_use *use = string->uses; use != NULL; use = use->next)
        note_locked(store, strings, use, use->former.kept_bytes);
    is_last = --string->editors == 0 && string->use_count == 0;
    spinlock_release(&strings->lock);
    spinlock_release(&string->lock);
    if (is_last)
        mem_free(string);
}

bool long_string_edit_slow(struct store *store, struct blob **blob, size_t capacity, size_t new_size, size_t offset,
                           size_t written)
{
    struct long_strings *strings = live_long_strings(store);
    struct long_string *string = begin_edit(store, strings, *blob);
    const size_t size = (*blob)->size;

    if (string == NULL)
        return false;
    spinlock_acquire(&string->lock);
    keep_locked(string, offset, written);
    if (new_size > size) /* it may have been longer */
        keep_locked(string, size, new_size - size);
    if (capacity > string->blob->capacity)
        grow_locked(store, strings, string, capacity);
    *blob = string->blob;
    end_edit(store, strings, string);
    return true;
}

void long_string_lose_slow(struct store *store, struct blob *blob)
{
    struct long_strings *strings = live_long_strings(store);
    struct long_string *string;

    spinlock_acquire(&strings->lock);
    string = find_locked(strings, blob);
    if (string != NULL && is_of_one_key_locked(string))
        count_blob_locked(store, strings, string);
    spinlock_release(&strings->lock);
}

/* --------------------------------------------------------------------------------------------------- the thread -- */

/* Who edits the string may have to move all of it. */
static void enter(struct long_string *string)
{
    const struct timespec pause = {.tv_nsec = SLEEP_NS};

    spinlock_assert_may_sleep();
    while (!spinlock_acquire_bounded(&string->lock, ACCESS_LOCK_SPINS))
        (void)nanosleep(&pause, NULL);
}

size_t long_string_size(const struct long_use *use)
{
    return use->former.size;
}

bool long_string_give(struct store *store, struct long_use *use, struct buffer *to)
{
    struct long_strings *strings = live_long_strings(store);
    struct long_string *string = use->string;
    size_t kept;
    bool more;

    (void)buffer_reserve(to, FORMER_STRING_PIECE_BYTES);
    enter(string);
    kept = use->former.kept_bytes;
    more = former_string_give(&use->former, string->blob->data, to);
    if (use->former.kept_bytes != kept) {
        spinlock_acquire(&strings->lock);
        note_locked(store, strings, use, use->former.kept_bytes);
        spinlock_release(&strings->lock);
    }
    spinlock_release(&string->lock);
    return more;
}

static void unlink_locked(struct long_string *string, const struct long_use *use)
{
    struct long_use **at = &string->uses;

    while (*at != use)
        at = &(*at)->next;
    *at = use->next;
    string->use_count--;
}

void long_string_leave(struct store *store, struct long_use **handle)
{
    struct long_strings *strings = live_long_strings(store);
    struct long_use *use = *handle;
    struct long_string *string = use->string;
    struct blob *blob;
    bool is_last, is_last_of_blob;

    *handle = NULL;
    enter(string);
    spinlock_acquire(&strings->lock);
    note_locked(store, strings, use, 0);
    strings->kept(store, use->snapshot, -(int64_t)use->blob_bytes);
    unlink_locked(string, use);
    blob = string->blob;
    is_last_of_blob = journal_blob_drop_value(blob);
    if (string->use_count == 0) /* behind that: who sees no strings listed sees no reference of theirs */
        unlist_locked(store, strings, string);
    is_last = string->use_count == 0 && string->editors == 0;
    spinlock_release(&strings->lock);
    spinlock_release(&string->lock);
    former_string_fini(&use->former);
    mem_free(use);
    if (is_last)
        mem_free(string);
    if (is_last_of_blob)
        blob_destroy_last(blob);
}
