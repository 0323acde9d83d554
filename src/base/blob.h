/* A blob: reference-counted bytes that threads can share. While a blob has one user, that user may change its bytes and
 * size. While it has several users, its bytes and size are constant. The count is atomic; to hand a blob to another
 * thread, use a lock or a queue. */
#pragma once

#include "base/assert.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob {
    _Atomic uint32_t refs;  /* atomic: release when a user leaves, acquire by the last user */
    _Atomic uint32_t flags; /* atomic: free for the use of whoever shares it; 0 at first */
    size_t size;            /* <= capacity */
    size_t capacity;
    char data[];
};

struct blob *blob_create(size_t size); /* one user; size == capacity; the bytes are not set */
struct blob *blob_create_copy(struct slice bytes);
must_check struct blob *blob_try_create(size_t size); /* NULL: no memory */

/* Changes the capacity of a blob with one user. Returns false without memory; the blob is unchanged then. `size` stays,
 * but is at most the new capacity. */
must_check bool blob_try_grow(struct blob **blob, size_t new_capacity);

/* The same of a blob with several users who know that it may move: none of them uses it meanwhile. */
must_check bool blob_try_grow_shared(struct blob **blob, size_t new_capacity);

void blob_destroy_last(struct blob *blob);

static inline struct blob *blob_acquire(struct blob *blob)
{
    uint32_t before = atomic_fetch_add_explicit(&blob->refs, 1, memory_order_relaxed);

    assert(before != 0 && before != UINT32_MAX);
    return blob;
}

/* Accepts NULL. Leaves NULL. */
static inline void blob_release(struct blob **blob)
{
    struct blob *gone = *blob;

    *blob = NULL;
    if (gone == NULL)
        return;
    /* The only user has nobody to race with, so it needs no locked instruction. */
    if (atomic_load_explicit(&gone->refs, memory_order_acquire) == 1 ||
        atomic_fetch_sub_explicit(&gone->refs, 1, memory_order_acq_rel) == 1)
        blob_destroy_last(gone);
}

static inline bool blob_is_exclusive(const struct blob *blob)
{
    return atomic_load_explicit(&blob->refs, memory_order_acquire) == 1;
}

static inline struct slice blob_slice(const struct blob *blob)
{
    return slice_make(blob->data, blob->size);
}

size_t blob_footprint(const struct blob *blob); /* bytes that the allocator uses for it */
