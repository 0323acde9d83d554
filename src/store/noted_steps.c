#include "store/noted_steps.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "base/mem.h"

#include <string.h>

enum { CHUNK_BYTES = 4096, CHUNK_BYTES_FIRST = 1024 }; /* few steps of a stripe take little memory */

struct noted_chunk {
    struct noted_chunk *next;
    uint64_t stamp; /* the greatest */
    size_t used, capacity;
    uint32_t keys, missing;
    bool owns;                       /* one of its steps does */
    _Alignas(uint64_t) char bytes[]; /* of struct packed */
};

/* What stands in a chunk, before name, words (each made a multiple of 8 bytes) and undo. */
struct packed {
    struct merge_place place, base;
    uint64_t previous;
    int64_t wall;
    uint64_t hash;
    uint32_t db, name_size, words_size, undo_size;
    bool base_overwrote, existed, exists, is_first, owns, name_in_words;
    uint32_t name_at; /* in the words */
};

static size_t padded(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

static bool is_within(struct slice part, struct slice whole)
{
    const uintptr_t at = (uintptr_t)part.data, begin = (uintptr_t)whole.data;

    return at >= begin && at - begin + part.size <= whole.size;
}

static COLD void add_chunk(struct noted_steps *steps, size_t least)
{
    const size_t usual = steps->last == NULL ? CHUNK_BYTES_FIRST : CHUNK_BYTES;
    const size_t size = MAX(usual, sizeof(struct noted_chunk) + least);
    struct noted_chunk *chunk = mem_alloc(size);

    *chunk = (struct noted_chunk){.capacity = size - sizeof(*chunk)};
    steps->bytes += size;
    if (steps->last != NULL)
        steps->last->next = chunk;
    else
        steps->first = chunk;
    steps->last = chunk;
}

static char *put(char *to, struct slice bytes)
{
    if (bytes.size != 0)
        memcpy(to, bytes.data, bytes.size);
    return to + padded(bytes.size);
}

void noted_steps_add(struct noted_steps *steps, const struct noted_step *step)
{
    const bool name_in_words = is_within(step->name, step->words);
    const size_t name_bytes = name_in_words ? 0 : padded(step->name.size);
    const size_t size = sizeof(struct packed) + name_bytes + padded(step->words.size) + step->undo.size;
    struct noted_chunk *chunk = steps->last;
    struct packed *packed;
    char *at;

    assert(step->undo.size % 8 == 0 && step->name.size <= UINT32_MAX && step->words.size <= UINT32_MAX);
    if (UNLIKELY(chunk == NULL || chunk->capacity - chunk->used < size)) {
        add_chunk(steps, size);
        chunk = steps->last;
    }
    packed = (struct packed *)(chunk->bytes + chunk->used);
    *packed = (struct packed){.place = step->place,
                              .base = step->base,
                              .previous = step->previous,
                              .wall = step->wall,
                              .hash = step->hash,
                              .db = step->db,
                              .name_size = (uint32_t)step->name.size,
                              .words_size = (uint32_t)step->words.size,
                              .undo_size = (uint32_t)step->undo.size,
                              .base_overwrote = step->base_overwrote,
                              .existed = step->existed,
                              .exists = step->exists,
                              .is_first = step->is_first,
                              .owns = step->owns,
                              .name_in_words = name_in_words};
    at = put((char *)(packed + 1), step->words);
    if (name_in_words)
        packed->name_at = (uint32_t)(step->name.data - step->words.data);
    else
        at = put(at, step->name);
    (void)put(at, step->undo);
    chunk->used += size;
    chunk->stamp = MAX(chunk->stamp, step->place.stamp);
    chunk->keys += step->is_first;
    chunk->missing += !step->exists;
    chunk->owns = chunk->owns || step->owns;
    steps->keys += step->is_first;
    steps->missing += !step->exists;
    if (chunk == steps->first)
        steps->first_stamp = chunk->stamp;
}

static size_t unpack(const char *from, struct noted_step *step)
{
    const struct packed *packed = (const struct packed *)from;
    const char *words = (const char *)(packed + 1), *behind = words + padded(packed->words_size), *name = behind;

    if (packed->name_in_words)
        name = words + packed->name_at;
    else
        behind += padded(packed->name_size);
    *step = (struct noted_step){.place = packed->place,
                                .base = packed->base,
                                .previous = packed->previous,
                                .wall = packed->wall,
                                .hash = packed->hash,
                                .db = packed->db,
                                .base_overwrote = packed->base_overwrote,
                                .existed = packed->existed,
                                .exists = packed->exists,
                                .is_first = packed->is_first,
                                .owns = packed->owns,
                                .name = slice_make(name, packed->name_size),
                                .words = slice_make(words, packed->words_size),
                                .undo = slice_make(behind, packed->undo_size)};
    return (size_t)(behind - from) + packed->undo_size;
}

struct noted_steps noted_steps_take(struct noted_steps *steps)
{
    const struct noted_steps taken = *steps;

    *steps = (struct noted_steps){0};
    return taken;
}

void noted_steps_each_of_first(const struct noted_steps *steps,
                               void (*visit)(const struct noted_step *step, void *context), void *context)
{
    const struct noted_chunk *chunk = steps->first;
    struct noted_step step;

    assert(chunk != NULL);
    for (size_t at = 0; at < chunk->used;) {
        at += unpack(chunk->bytes + at, &step);
        visit(&step, context);
    }
}

void noted_steps_drop_first(struct noted_steps *steps, void (*release)(const struct noted_step *step, void *context),
                            void *context)
{
    struct noted_chunk *chunk = steps->first;
    struct noted_step step;

    assert(chunk != NULL);
    for (size_t at = 0; UNLIKELY(chunk->owns && release != NULL) && at < chunk->used;) {
        at += unpack(chunk->bytes + at, &step);
        if (step.owns)
            release(&step, context);
    }
    steps->first = chunk->next;
    if (steps->first == NULL)
        steps->last = NULL;
    steps->first_stamp = steps->first != NULL ? steps->first->stamp : 0;
    steps->keys -= chunk->keys;
    steps->missing -= chunk->missing;
    steps->bytes -= sizeof(*chunk) + chunk->capacity;
    mem_free(chunk);
}

void noted_steps_prefetch(const struct noted_steps *steps)
{
    if (steps->last != NULL)
        __builtin_prefetch(steps->last, 1);
}

void noted_steps_prefetch_room(const struct noted_steps *steps)
{
    const struct noted_chunk *chunk = steps->last;

    for (unsigned line = 0; chunk != NULL && line < 3; line++)
        __builtin_prefetch(chunk->bytes + chunk->used + (size_t)line * CACHE_LINE_BYTES, 1);
}
