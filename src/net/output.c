#include "net/output.h"

#include "base/assert.h"
#include "base/blob.h"
#include "base/buffer.h"
#include "base/mem.h"

#include <string.h>
#include <sys/uio.h>

/* A node is either a block, its header directly in front of its memory, or a reference, a header alone. Blocks come
 * in two sizes, told apart by `limit`. Blocks of 16 KiB all begin at the same offset of a page and would crowd into
 * few sets of the caches when fifty connections get a short reply each: hence the small ones first. */

static_assert(sizeof(struct output_node) == OUTPUT_NODE_BYTES, "OUTPUT_NODE_BYTES is what the header takes");

enum {
    POOL_SMALL_MAX = 1024, /* 1 MiB */
    POOL_LARGE_MAX = 128,  /* 2 MiB */
    POOL_KEPT = 1,         /* of each size */
    GAP_MAX_BYTES = 64,
    SPLICE_COPY_BYTES = 1024, /* up to here copying beats relinking and keeps chains short */
};

static char *block_start(struct output_node *node)
{
    return (char *)node + sizeof(*node);
}

static size_t block_bytes(const struct output_node *node)
{
    return (size_t)(node->limit - (const char *)node);
}

static bool block_is_large(const struct output_node *node)
{
    return block_bytes(node) == OUTPUT_BLOCK_BYTES;
}

static struct output_node *block_create(struct output_pool *pool, bool large)
{
    size_t size = large ? OUTPUT_BLOCK_BYTES : OUTPUT_SMALL_BLOCK_BYTES;
    struct output_node *node = NULL;

    if (pool != NULL && large && pool->large != NULL) {
        node = pool->large;
        pool->large = node->next;
        pool->large_count--;
    } else if (pool != NULL && !large && pool->small != NULL) {
        node = pool->small;
        pool->small = node->next;
        pool->small_count--;
    } else {
        node = mem_alloc(size);
        node->limit = (char *)node + size;
        if (pool != NULL)
            output_pool_add_transient(pool, size);
    }
    node->next = NULL;
    node->blob = NULL;
    node->data = node->end = block_start(node);
    return node;
}

/* An older block may be sent while newer ones stay: then too little counts as transient until the next try. */
static void less_transient(struct output_pool *pool, size_t bytes)
{
    size_t before = output_pool_transient_bytes(pool);

    atomic_store_explicit(&pool->transient_bytes, before - MIN(before, bytes), memory_order_relaxed);
}

static ALWAYS_INLINE void node_destroy_to(struct output_pool *pool, struct output_node *node, uint32_t small_most,
                                          uint32_t large_most)
{
    if (UNLIKELY(node->blob != NULL)) {
        blob_release(&node->blob);
        mem_free_sized(node, sizeof(*node));
        return;
    }
    if (pool != NULL && block_is_large(node) && pool->large_count < large_most) {
        node->next = pool->large;
        pool->large = node;
        pool->large_count++;
        return;
    }
    if (pool != NULL && !block_is_large(node) && pool->small_count < small_most) {
        node->next = pool->small;
        pool->small = node;
        pool->small_count++;
        return;
    }
    if (pool != NULL)
        less_transient(pool, block_bytes(node));
    mem_free_sized(node, block_bytes(node));
}

static void node_destroy(struct output_pool *pool, struct output_node *node)
{
    node_destroy_to(pool, node, POOL_SMALL_MAX, POOL_LARGE_MAX);
}

static void keep(struct output_pool *pool, struct output_node **list, uint32_t *count, uint32_t kept)
{
    for (; *count > kept; --*count) {
        struct output_node *node = *list;

        *list = node->next;
        less_transient(pool, block_bytes(node));
        mem_free_sized(node, block_bytes(node));
    }
}

void output_pool_init(struct output_pool *pool)
{
    for (int large = 0; large < 2; large++)
        node_destroy(pool, block_create(pool, large != 0));
    output_pool_tried(pool);
}

void output_pool_fini(struct output_pool *pool)
{
    keep(pool, &pool->small, &pool->small_count, 0);
    keep(pool, &pool->large, &pool->large_count, 0);
}

void output_pool_trim(struct output_pool *pool)
{
    keep(pool, &pool->small, &pool->small_count, POOL_KEPT);
    keep(pool, &pool->large, &pool->large_count, POOL_KEPT);
}

void output_pool_shrink(struct output_pool *pool)
{
    keep(pool, &pool->small, &pool->small_count, MAX(pool->small_count / 2, POOL_KEPT));
    keep(pool, &pool->large, &pool->large_count, MAX(pool->large_count / 2, POOL_KEPT));
}

void output_pool_tried(struct output_pool *pool)
{
    size_t free_bytes = (size_t)(pool->small_count - MIN(pool->small_count, POOL_KEPT)) * OUTPUT_SMALL_BLOCK_BYTES +
                        (size_t)(pool->large_count - MIN(pool->large_count, POOL_KEPT)) * OUTPUT_BLOCK_BYTES;

    atomic_store_explicit(&pool->transient_bytes, free_bytes, memory_order_relaxed);
}

void output_init(struct output *output, struct output_pool *pool)
{
    *output = (struct output){.pool = pool};
}

/* Brings closed_bytes and the last node's end up to date; the block stays open. */
static void output_fold(struct output *output)
{
    if (output->cursor == NULL)
        return;
    output->tail->end = output->cursor;
    output->closed_bytes += (size_t)(output->cursor - output->mark);
    output->mark = output->cursor;
}

/* Nothing more can be added to the last node; the next bytes open a new one. */
static void output_close_tail(struct output *output)
{
    output_fold(output);
    output->cursor = output->limit = output->mark = NULL;
}

static void output_reset(struct output *output)
{
    output->head = output->tail = NULL;
    output->cursor = output->limit = output->mark = NULL;
    output->closed_bytes = 0;
    output->more_count = 0;
}

static void output_link(struct output *output, struct output_node *node)
{
    if (output->head == NULL) {
        output->head = node;
    } else {
        output->tail->next = node;
        output->more_count++;
    }
    output->tail = node;
}

static void output_open_block(struct output *output, size_t room)
{
    bool fits_small = room <= OUTPUT_SMALL_BLOCK_BYTES - sizeof(struct output_node);
    /* After a reference a short header and the next reference are likely, so small is right again. */
    bool first = output->head == NULL ? !output->large_first : output->tail->blob != NULL;
    struct output_node *node = NULL;

    output_close_tail(output);
    if (output->head != NULL && !first)
        output->large_first = true;
    node = block_create(output->pool, !(fits_small && first));
    output_link(output, node);
    output->cursor = output->mark = node->data;
    output->limit = node->limit;
}

char *output_reserve_slow(struct output *output, size_t size)
{
    assert(size <= OUTPUT_RESERVE_MAX_BYTES);
    output_open_block(output, size);
    return output->cursor;
}

void output_append_slow(struct output *output, const char *data, size_t size)
{
    while (size > 0) {
        size_t room = (size_t)(output->limit - output->cursor);
        size_t part = MIN(size, room);

        if (part == 0) {
            output_open_block(output, MIN(size, OUTPUT_RESERVE_MAX_BYTES));
            continue;
        }
        memcpy(output->cursor, data, part);
        output->cursor += part;
        data += part;
        size -= part;
    }
}

void output_append_blob(struct output *output, struct blob *blob, size_t offset, size_t size)
{
    struct output_node *node = NULL;

    assert(offset <= blob->size);
    assert(size <= blob->size - offset);
    if (size == 0)
        return;
    output_close_tail(output);
    node = mem_alloc(sizeof(*node));
    *node = (struct output_node){.blob = blob_acquire(blob), .data = blob->data + offset};
    node->end = node->limit = node->data + size;
    output_link(output, node);
    output->closed_bytes += size;
}

void output_clear(struct output *output)
{
    struct output_node *next = NULL;

    for (struct output_node *node = output->head; node != NULL; node = next) {
        next = node->next;
        node_destroy(output->pool, node);
    }
    output_reset(output);
}

void output_give_back(struct output *output)
{
    struct output_node *next = NULL;

    for (struct output_node *node = output->head; node != NULL; node = next) {
        next = node->next;
        node_destroy_to(output->pool, node, POOL_KEPT, POOL_KEPT);
    }
    output_reset(output);
}

void output_splice(struct output *output, struct output *source)
{
    size_t size = output_size(source);

    assert(output != source);
    if (source->head == NULL)
        return;
    if (size <= SPLICE_COPY_BYTES && source->head == source->tail && source->head->blob == NULL) {
        output_append(output, source->head->data, size);
        output_clear(source);
        return;
    }
    output_close_tail(output);
    output_fold(source);
    output_link(output, source->head);
    output->tail = source->tail;
    output->cursor = source->cursor;
    output->limit = source->limit;
    output->mark = source->mark;
    output->closed_bytes += source->closed_bytes;
    output->more_count += source->more_count;
    output_reset(source);
}

static const char *node_end(const struct output *output, const struct output_node *node)
{
    return node == output->tail && output->cursor != NULL ? output->cursor : node->end;
}

void output_to_buffer(const struct output *output, struct buffer *buffer)
{
    for (const struct output_node *node = output->head; node != NULL; node = node->next)
        buffer_append(buffer, node->data, (size_t)(node_end(output, node) - node->data));
}

size_t output_memory_bytes(const struct output *output)
{
    size_t size = 0;

    for (struct output_node *node = output->head; node != NULL; node = node->next)
        size += node->blob != NULL ? sizeof(*node) : (size_t)(node->limit - (char *)node);
    return size;
}

unsigned output_iovec(const struct output *output, struct iovec *pieces, unsigned max)
{
    unsigned count = 0;

    for (const struct output_node *node = output->head; node != NULL && count < max; node = node->next) {
        size_t size = (size_t)(node_end(output, node) - node->data);

        if (size == 0)
            continue;
        pieces[count++] = (struct iovec){.iov_base = node->data, .iov_len = size};
    }
    return count;
}

void output_consume(struct output *output, size_t size)
{
    size_t total = output_size(output);

    assert(size <= total);
    if (size == total) {
        /* A chain that fits a small block needs no large one next time. */
        if (output->head == output->tail)
            output->large_first = output->large_first && total > OUTPUT_SMALL_BLOCK_BYTES - sizeof(struct output_node);
        output_clear(output);
        return;
    }
    output_fold(output);
    output->closed_bytes -= size;
    while (size > 0) {
        struct output_node *node = output->head;
        size_t here = (size_t)(node->end - node->data);

        if (size < here || node == output->tail) {
            node->data += size;
            return;
        }
        size -= here;
        output->head = node->next;
        output->more_count--;
        node_destroy(output->pool, node);
    }
}

struct output_gap output_gap_open(struct output *output, size_t size)
{
    struct output_gap gap = {.start = output_reserve(output, size), .size = size};

    assert(size <= GAP_MAX_BYTES);
    gap.node = output->tail;
    output_commit(output, gap.start + size);
    return gap;
}

void output_gap_close(struct output *output, struct output_gap gap, const char *data, size_t size)
{
    size_t surplus = gap.size - size;
    char *rest = gap.start + gap.size;
    char *end = NULL;

    assert(size <= gap.size);
    memcpy(gap.start, data, size);
    if (surplus == 0)
        return;
    /* Later bytes of the same block move up: at most 16 KiB, however much was written since. */
    output_fold(output);
    end = gap.node->end;
    memmove(gap.start + size, rest, (size_t)(end - rest));
    gap.node->end -= surplus;
    output->closed_bytes -= surplus;
    if (gap.node == output->tail && output->cursor != NULL)
        output->cursor = output->mark = gap.node->end;
}
