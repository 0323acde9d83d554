/* output.h: bytes to be sent, as a chain of blocks and of references to shared blobs.
 *
 * Replies are written straight into the last block: output_reserve() returns room, output_commit() says how much of it
 * was used. A large value is not copied: output_append_blob() keeps a reference until the bytes are sent. An empty
 * output owns no memory. The first block of a chain is small (1 KiB), unless the previous chain of this output outgrew
 * that. All further blocks are large (16 KiB). Blocks come from the loop's pool and return to it.
 *
 * An output belongs to one thread at a time and may be handed over as a whole. It also works without a pool (NULL), for
 * the captured reply of a script or a message for many clients. */
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

/* The free blocks of one loop. Their number is bounded; further blocks go back to the heap. Zeroed memory is an empty
 * pool. One block of each size always stays, so a short reply, such as one about memory, needs no allocation. */
struct output_pool {
    struct output_node *small;
    struct output_node *large;
    uint32_t small_count;
    uint32_t large_count;
    /* atomic: relaxed; the owner writes it, others read it. Memory that is about to be free: the free blocks except
     * those that always stay, and blocks that were allocated since the loop last tried to send its output. */
    _Atomic size_t transient_bytes;
};

void output_pool_init(struct output_pool *pool); /* from zeroed memory; allocates the blocks that always stay */
void output_pool_fini(struct output_pool *pool); /* frees the blocks; the pool may be used again */
void output_pool_trim(struct output_pool *pool); /* frees the blocks except those that always stay */
/* Frees half of these blocks: a pool that is not used shrinks quickly. */
void output_pool_shrink(struct output_pool *pool);
/* The loop has sent what it could: the output that is left may stay for long. */
void output_pool_tried(struct output_pool *pool);

/* Adds other memory that will be free after the next try to send. */
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

/* One piece of a chain. The bytes from data to end are to be sent. */
struct output_node {
    struct output_node *next;
    struct blob *blob; /* a reference: data points into the blob, and nothing can be added; NULL: the node is a block */
    char *data;
    char *end;   /* not current in the last node of a chain while it is open: use the output's cursor */
    char *limit; /* the end of the block's memory; in a reference the same as end */
};

/* Zeroed memory with or without a pool is an empty output. The fields are for the inline functions below. */
struct output {
    char *cursor; /* the address for the next byte; NULL unless the last node is an open block */
    char *limit;
    char *mark;          /* the cursor when closed_bytes was last correct */
    size_t closed_bytes; /* all bytes except those from mark to cursor */
    struct output_node *head;
    struct output_node *tail;
    struct output_pool *pool; /* may be NULL */
    uint32_t more_count;      /* nodes behind the first */
    bool large_first;         /* the last chain outgrew a small block: begin with a large one */
};

void output_init(struct output *output, struct output_pool *pool);
void output_clear(struct output *output);     /* drops all bytes; also ends an output */
void output_give_back(struct output *output); /* the same, but the memory goes to the heap and not to the pool */

/* Returns contiguous room for `size` <= OUTPUT_RESERVE_MAX_BYTES bytes, valid until the next call on this output. Then
 * call output_commit() with the end of the written bytes; writing none is allowed. */
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

/* Appends the blob's bytes [offset, offset + size) without a copy, and acquires a reference. */
void output_append_blob(struct output *output, struct blob *blob, size_t offset, size_t size);

/* Moves all bytes of `source` to the end of `output` and leaves `source` empty. Copies few bytes, relinks many. */
void output_splice(struct output *output, struct output *source);

/* Appends a copy of all bytes to the buffer. The output keeps its bytes. */
void output_to_buffer(const struct output *output, struct buffer *buffer);

/* Memory in bytes: blocks count in full, references with their header only, since others use the blob as well. */
size_t output_memory_bytes(const struct output *output);

/* The same without visiting each block. May be too large: blocks are not filled to their ends. */
static inline size_t output_memory_estimate(const struct output *output)
{
    size_t blocks = ((size_t)output->more_count + 1) * OUTPUT_BLOCK_BYTES, twice = 2 * output_size(output);

    return twice < blocks ? twice : blocks;
}

/* The number of pieces after the first one. */
static inline uint32_t output_more_count(const struct output *output)
{
    return output->more_count;
}

/* Describes the first pieces in at most `max` entries and returns how many were used. */
unsigned output_iovec(const struct output *output, struct iovec *pieces, unsigned max);

/* Removes the first `size` bytes after they were sent. */
void output_consume(struct output *output, size_t size);

/* A gap: room for `size` bytes (<= 64) whose contents are known later. Between open and close, do not consume or splice
 * away any bytes. Gaps nest: close the last one first. At most `size` bytes may be filled in. */
struct output_gap {
    struct output_node *node;
    char *start;
    size_t size;
};

struct output_gap output_gap_open(struct output *output, size_t size);
void output_gap_close(struct output *output, struct output_gap gap, const char *data, size_t size);
