/* output.h: bytes on their way out, as a chain of blocks and of references to shared blobs.
 *
 * Replies are written straight into the last block: output_reserve() hands out room, output_commit() says how much
 * of it was used. A large value is not copied: output_append_blob() keeps a reference until its bytes were sent.
 * An empty output owns no memory. The first block of a chain is small (1 KiB) unless the last chain of this output
 * had outgrown that; all further ones are large (16 KiB). Blocks come from and go back to the loop's pool.
 *
 * An output belongs to one thread at a time and may be handed over whole. It can stand alone (pool NULL): the
 * captured reply of a script, a message for many clients. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob;
struct buffer;
struct iovec;

#define OUTPUT_BLOCK_BYTES 16384      /* a large block with its header */
#define OUTPUT_SMALL_BLOCK_BYTES 1024 /* a small block with its header */
#define OUTPUT_NODE_BYTES 40          /* the header; checked in output.c */
#define OUTPUT_RESERVE_MAX_BYTES (OUTPUT_BLOCK_BYTES - OUTPUT_NODE_BYTES)

/* Free blocks of one loop; bounded, what is more goes back to the heap. Zeroed memory is an empty pool. One block of
 * each size stays for good, so that a short reply, also that which tells of the memory in use, needs none. */
struct output_pool {
    struct output_node *small;
    struct output_node *large;
    uint32_t small_count;
    uint32_t large_count;
    /* atomic, relaxed; written by the owner, others read it. Memory that will be free soon, or could be: the free
     * blocks but for those that stay, and those that have come out of the heap since the loop last tried to send what
     * there is. */
    _Atomic size_t transient_bytes;
};

void output_pool_init(struct output_pool *pool);   /* zeroed memory; takes what stays */
void output_pool_fini(struct output_pool *pool);   /* frees the blocks; the pool may be used again */
void output_pool_trim(struct output_pool *pool);   /* frees those that do not stay */
void output_pool_shrink(struct output_pool *pool); /* frees half of them: of one that is not used little is left soon */
void output_pool_tried(struct output_pool *pool);  /* what could be sent was: what is left may stay for long */

/* Something else that goes when the next try to send has been made. */
static inline void output_pool_add_transient(struct output_pool *pool, size_t bytes)
{
    atomic_store_explicit(&pool->transient_bytes,
                          atomic_load_explicit(&pool->transient_bytes, memory_order_relaxed) + bytes,
                          memory_order_relaxed);
}

static inline size_t output_pool_transient_bytes(const struct output_pool *pool) /* any thread */
{
    return atomic_load_explicit(&pool->transient_bytes, memory_order_relaxed);
}

/* One piece of a chain. Bytes from data to end are to be sent. */
struct output_node {
    struct output_node *next;
    struct blob *blob; /* a reference: data points into it, and nothing can be added; NULL: an own block */
    char *data;
    char *end;   /* stale in the last node of a chain while it is open: there the output's cursor counts */
    char *limit; /* where the block's memory ends; in a reference the same as end */
};

/* Zeroed memory with a pool (or without) is an empty output. The fields are for the inline functions below. */
struct output {
    char *cursor; /* where the next byte goes; NULL unless the last node is an open block */
    char *limit;
    char *mark;          /* cursor when closed_bytes was last correct */
    size_t closed_bytes; /* all bytes but those from mark to cursor */
    struct output_node *head;
    struct output_node *tail;
    struct output_pool *pool; /* may be NULL */
    uint32_t more_count;      /* nodes behind the first */
    bool large_first;         /* the last chain outgrew a small block: begin with a large one */
};

void output_init(struct output *output, struct output_pool *pool);
void output_clear(struct output *output);     /* drops all bytes, also the way to end an output */
void output_give_back(struct output *output); /* the same, and the memory goes to the heap, not to the pool */

/* Room in one piece for `size` <= OUTPUT_RESERVE_MAX_BYTES bytes, until the next call on this output.
 * Then output_commit() with the end of what was written, which may be nothing. */
char *output_reserve_slow(struct output *output, size_t size);

static ALWAYS_INLINE char *output_reserve(struct output *output, size_t size)
{
    if (LIKELY((size_t)(output->limit - output->cursor) >= size))
        return output->cursor;
    return output_reserve_slow(output, size);
}

static ALWAYS_INLINE void output_commit(struct output *output, char *end)
{
    output->cursor = end;
}

static ALWAYS_INLINE size_t output_size(const struct output *output)
{
    return output->closed_bytes + (size_t)(output->cursor - output->mark);
}

static ALWAYS_INLINE bool output_is_empty(const struct output *output)
{
    return output->head == NULL;
}

void output_append_slow(struct output *output, const char *data, size_t size);

/* Appends a copy of any size. */
static ALWAYS_INLINE void output_append(struct output *output, const char *data, size_t size)
{
    if (LIKELY((size_t)(output->limit - output->cursor) >= size && size != 0)) {
        __builtin_memcpy(output->cursor, data, size);
        output->cursor += size;
        return;
    }
    output_append_slow(output, data, size);
}

/* Appends blob bytes [offset, offset + size) without copying; takes a reference of its own. */
void output_append_blob(struct output *output, struct blob *blob, size_t offset, size_t size);

/* Moves everything in `source` to the end of `output`; source is empty then. Few bytes are copied, many relinked. */
void output_splice(struct output *output, struct output *source);

/* Appends a copy of everything to the buffer; the output keeps its bytes. */
void output_to_buffer(const struct output *output, struct buffer *buffer);

/* Memory held: blocks whole, references with their header only (the blob is somebody else's as well). */
size_t output_memory_bytes(const struct output *output);

/* The same without a look at each block, and generous: blocks are not filled to their ends. */
static inline size_t output_memory_estimate(const struct output *output)
{
    size_t blocks = ((size_t)output->more_count + 1) * OUTPUT_BLOCK_BYTES, twice = 2 * output_size(output);

    return twice < blocks ? twice : blocks;
}

/* Pieces that wait behind the first one. */
static inline uint32_t output_more_count(const struct output *output)
{
    return output->more_count;
}

/* Describes the first pieces in at most `max` entries and returns how many were used. */
unsigned output_iovec(const struct output *output, struct iovec *pieces, unsigned max);

/* Forgets the first `size` bytes: they were sent. */
void output_consume(struct output *output, size_t size);

/* A gap of `size` bytes (<= 64) now, whose bytes become known later. Between open and close nothing may be consumed
 * or spliced away. Gaps nest: the last one opened is closed first, with at most as many bytes as were said. */
struct output_gap {
    struct output_node *node;
    char *start;
    size_t size;
};

struct output_gap output_gap_open(struct output *output, size_t size);
void output_gap_close(struct output *output, struct output_gap gap, const char *data, size_t size);
