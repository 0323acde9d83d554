/* A blob: bytes with a count of their users, shared between threads. While it has one user its bytes and size may
 * change; once a second one has it they are constant, for everybody, until only one is left. The count is atomic;
 * handing a blob to another thread needs its own ordering (a lock, a queue). */
#pragma once

#include "base/assert.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob {
    _Atomic uint32_t refs; /* atomic: release on leaving, acquire by the last */
    uint32_t flags;        /* the owner's, no meaning here; 0 at first */
    size_t size;           /* <= capacity */
    size_t capacity;
    char data[];
};

struct blob *blob_create(size_t size); /* one user; size == capacity; bytes are not set */
struct blob *blob_create_copy(struct slice bytes);
must_check struct blob *blob_try_create(size_t size); /* NULL: no memory */

/* More (or less) room while exclusive. False: no memory, the blob is as it was. `size` is kept, cut at the capacity. */
must_check bool blob_try_grow(struct blob **blob, size_t new_capacity);

void blob_destroy_last(struct blob *blob);

static inline struct blob *blob_acquire(struct blob *blob)
{
    uint32_t before = atomic_fetch_add_explicit(&blob->refs, 1, memory_order_relaxed);

    assert(before != 0 && before != UINT32_MAX);
    return blob;
}

/* NULL is fine; leaves NULL. */
static inline void blob_release(struct blob **blob)
{
    struct blob *gone = *blob;

    *blob = NULL;
    if (gone == NULL)
        return;
    /* Alone there is nobody to race with: no locked instruction. */
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

size_t blob_footprint(const struct blob *blob); /* bytes the allocator gave for it */
