#include "base/blob.h"

#include "base/mem.h"

/* Passes NULL on. */
static struct blob *blob_prepare(struct blob *blob, size_t size)
{
    if (blob == NULL)
        return NULL;
    atomic_init(&blob->refs, 1);
    atomic_init(&blob->flags, 0);
    blob->size = size;
    blob->capacity = size;
    return blob;
}

struct blob *blob_create(size_t size)
{
    assert(size <= SIZE_MAX - sizeof(struct blob));
    return blob_prepare(mem_alloc(sizeof(struct blob) + size), size);
}

struct blob *blob_create_copy(struct slice bytes)
{
    struct blob *blob = blob_create(bytes.size);

    if (bytes.size != 0)
        memcpy(blob->data, bytes.data, bytes.size);
    return blob;
}

struct blob *blob_try_create(size_t size)
{
    if (size > SIZE_MAX - sizeof(struct blob))
        return NULL;
    return blob_prepare(mem_try_alloc(sizeof(struct blob) + size), size);
}

bool blob_try_grow(struct blob **blob, size_t new_capacity)
{
    assert(blob_is_exclusive(*blob));
    return blob_try_grow_shared(blob, new_capacity);
}

bool blob_try_grow_shared(struct blob **blob, size_t new_capacity)
{
    struct blob *moved;

    if (new_capacity > SIZE_MAX - sizeof(struct blob))
        return false;
    moved = mem_try_realloc(*blob, sizeof(struct blob) + new_capacity);
    if (moved == NULL)
        return false;
    moved->capacity = new_capacity;
    moved->size = MIN(moved->size, new_capacity);
    *blob = moved;
    return true;
}

void blob_destroy_last(struct blob *blob)
{
    mem_free_sized(blob, sizeof(struct blob) + blob->capacity);
}

size_t blob_footprint(const struct blob *blob)
{
    return mem_usable(blob);
}
