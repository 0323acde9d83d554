#include "data/former_texts.h"

#include "base/assert.h"
#include "base/copy.h"
#include "base/mem.h"

enum { BLOCK_BYTES_MOST = 32 << 10 }; /* a longer text has a block of its own */

/* Texts are at from ... to, each behind its size. The room before is for texts at the front, that behind for those at
 * the back. A block that has none goes. */
struct former_block {
    struct former_block *next;
    size_t from, to, capacity;
    char bytes[];
};

/* What the text takes. */
static size_t room_of(struct slice text)
{
    return sizeof(uint64_t) + text.size;
}

/* A chain begins with a block for one text, as most have no other; each next one is larger. */
static struct former_block *block_create(const struct former_block *beside, size_t least, uint64_t *bytes)
{
    const size_t wanted = beside != NULL ? MIN(2 * beside->capacity, (size_t)BLOCK_BYTES_MOST) : 0;
    const size_t size = mem_good_size(sizeof(struct former_block) + MAX(least, wanted));
    struct former_block *block = mem_alloc(size);

    *block = (struct former_block){.capacity = size - sizeof(*block)};
    *bytes += size;
    return block;
}

static void block_destroy(struct former_block *block, uint64_t *bytes)
{
    *bytes -= sizeof(*block) + block->capacity;
    mem_free(block);
}

/* Between the last one and the first. */
static void link_block(struct former_texts *texts, struct former_block *block)
{
    if (texts->last == NULL) {
        block->next = block;
        texts->last = block;
    } else {
        block->next = texts->last->next;
        texts->last->next = block;
    }
}

static void write_text(struct former_block *block, size_t at, struct slice text)
{
    const uint64_t size = text.size;

    memcpy(block->bytes + at, &size, sizeof(size));
    copy_word(block->bytes + at + sizeof(size), text.data, text.size);
}

void former_texts_add_first(struct former_texts *texts, struct slice text, uint64_t *bytes)
{
    struct former_block *first = texts->last != NULL ? texts->last->next : NULL;

    if (first == NULL || first->from < room_of(text)) {
        first = block_create(first, room_of(text), bytes);
        first->from = first->to = first->capacity;
        link_block(texts, first);
    }
    first->from -= room_of(text);
    write_text(first, first->from, text);
}

void former_texts_add_last(struct former_texts *texts, struct slice text, uint64_t *bytes)
{
    struct former_block *last = texts->last;

    if (last == NULL || last->capacity - last->to < room_of(text)) {
        last = block_create(last, room_of(text), bytes);
        link_block(texts, last);
        texts->last = last;
    }
    write_text(last, last->to, text);
    last->to += room_of(text);
}

struct slice former_texts_first(const struct former_texts *texts)
{
    const struct former_block *first = texts->last->next;
    uint64_t size;

    assert(first->to - first->from >= sizeof(size));
    memcpy(&size, first->bytes + first->from, sizeof(size));
    return slice_make(first->bytes + first->from + sizeof(size), size);
}

static void drop_first_block(struct former_texts *texts, uint64_t *bytes)
{
    struct former_block *first = texts->last->next;

    if (first == texts->last)
        texts->last = NULL;
    else
        texts->last->next = first->next;
    block_destroy(first, bytes);
}

void former_texts_drop_first(struct former_texts *texts, uint64_t *bytes)
{
    struct former_block *first = texts->last->next;

    first->from += room_of(former_texts_first(texts));
    if (first->from == first->to)
        drop_first_block(texts, bytes);
}

void former_texts_clear(struct former_texts *texts, uint64_t *bytes)
{
    while (texts->last != NULL)
        drop_first_block(texts, bytes);
}
