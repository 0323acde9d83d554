#include "store/noted_steps.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/mem.h"

#include <stddef.h>
#include <stdlib.h>

enum { SPARE_PART = 8 }; /* of what is kept for steps to come, that goes with each look */

#define CHUNK_ROOM (NOTED_CHUNK_BYTES - sizeof(struct noted_chunk))
static_assert(CHUNK_ROOM / 8 <= UINT16_MAX, "where a step stands in a chunk is a number of 16 bits");

static struct noted_link *heads_of(const struct noted_log *log)
{
    return atomic_load_explicit(&log->heads, memory_order_relaxed);
}

void noted_steps_init(struct noted_steps *steps, uint32_t stripe_count)
{
    *steps = (struct noted_steps){.stripe_count = stripe_count};
    for (uint32_t i = 0; i < NOTED_LOGS; i++)
        spinlock_init(&steps->logs[i].lock, LOCK_NOTED);
}

void noted_steps_fini(struct noted_steps *steps)
{
    for (uint32_t i = 0; i < NOTED_LOGS; i++) {
        struct noted_log *log = &steps->logs[i];

        assert(log->first == NULL);
        while (log->spare != NULL) {
            struct noted_chunk *spare = log->spare;

            log->spare = spare->next;
            mem_free(spare);
        }
        mem_free(heads_of(log));
    }
}

static size_t chunk_bytes(const struct noted_chunk *chunk)
{
    return sizeof(*chunk) + chunk->capacity;
}

static void note_oldest(struct noted_log *log)
{
    atomic_store_explicit(&log->oldest, log->first != NULL ? log->first->stamp : 0, memory_order_relaxed);
}

static void unlink_chunk(struct noted_log *log, struct noted_chunk *chunk)
{
    if (chunk->before != NULL)
        chunk->before->next = chunk->next;
    else
        log->first = chunk->next;
    if (chunk->next != NULL)
        chunk->next->before = chunk->before;
    else
        log->last = chunk->before;
    noted_add_count(&log->bytes, 0 - (uint64_t)chunk_bytes(chunk));
    noted_add_count(&log->keys, 0 - (uint64_t)chunk->keys);
    noted_add_count(&log->taken_bytes, 0 - (uint64_t)chunk->taken_bytes);
    note_oldest(log);
}

static void keep_spare(struct noted_log *log, struct noted_chunk *chunk)
{
    if (chunk->capacity != CHUNK_ROOM) {
        mem_free(chunk);
        return;
    }
    chunk->next = log->spare;
    log->spare = chunk;
    log->spare_count++;
}

/* Those that own something are returned, as a list by `next`. */
static struct noted_chunk *drop_until(struct noted_log *log, uint64_t until, uint64_t *keys)
{
    struct noted_chunk *owners = NULL;

    while (log->first != NULL && log->first->stamp <= until) {
        struct noted_chunk *chunk = log->first;

        *keys += chunk->keys;
        unlink_chunk(log, chunk);
        if (LIKELY(!chunk->owns)) {
            keep_spare(log, chunk);
            continue;
        }
        chunk->next = owners;
        owners = chunk;
    }
    return owners;
}

COLD struct noted_chunk *noted_log_make_room(struct noted_log *log, uint32_t stripe_count, size_t size,
                                             uint64_t frontier)
{
    uint64_t keys = 0;
    struct noted_chunk *dropped, *chunk;
    size_t capacity;

    spinlock_assert_held(&log->lock);
    if (heads_of(log) == NULL)
        atomic_store_explicit(&log->heads, mem_alloc_zero(stripe_count * sizeof(struct noted_link)),
                              memory_order_relaxed);
    dropped = drop_until(log, frontier, &keys);
    chunk = log->spare;
    if (size > CHUNK_ROOM || chunk == NULL) {
        capacity = MAX(size, CHUNK_ROOM);
        chunk = mem_alloc(sizeof(*chunk) + capacity);
    } else {
        capacity = chunk->capacity;
        log->spare = chunk->next;
        log->spare_count--;
    }
    *chunk = (struct noted_chunk){.before = log->last, .number = ++log->last_number, .capacity = capacity};
    if (log->last != NULL)
        log->last->next = chunk;
    else
        log->first = chunk;
    log->last = chunk;
    noted_add_count(&log->bytes, chunk_bytes(chunk));
    return dropped;
}

static size_t unpack(const char *from, struct noted_step *step)
{
    const struct noted_packed *packed = (const struct noted_packed *)from;
    const char *words = (const char *)(packed + 1), *behind = words + noted_padded(packed->words_size), *name = behind;

    if (packed->name_at != NOTED_APART)
        name = words + packed->name_at;
    else
        behind += noted_padded(packed->name_size);
    *step = (struct noted_step){.place = packed->place,
                                .base = packed->base,
                                .previous = packed->previous,
                                .wall = packed->wall,
                                .hash = packed->hash,
                                .db = packed->db,
                                .base_overwrote = packed->base_overwrote,
                                .existed = packed->existed,
                                .is_first = packed->is_first,
                                .owns = packed->owns,
                                .name = slice_make(name, packed->name_size),
                                .words = slice_make(words, packed->words_size),
                                .undo = slice_make(behind, packed->undo_size)};
    return (size_t)(behind - from) + packed->undo_size;
}

COLD void noted_chunks_release(struct noted_log *log, struct noted_chunk *dropped, noted_release *release,
                               void *context)
{
    struct noted_step step;

    for (struct noted_chunk *chunk = dropped, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        for (size_t at = 0; at < chunk->used;) {
            at += unpack(chunk->bytes + at, &step);
            if (step.owns)
                release(&step, context);
        }
        spinlock_acquire(&log->lock);
        keep_spare(log, chunk);
        spinlock_release(&log->lock);
    }
}

uint64_t noted_steps_drop(struct noted_steps *steps, uint64_t until, noted_release *release, void *context)
{
    uint64_t keys = 0;

    for (uint32_t i = 0; i < NOTED_LOGS; i++) {
        struct noted_log *log = &steps->logs[i];
        const uint64_t oldest = atomic_load_explicit(&log->oldest, memory_order_relaxed);
        struct noted_chunk *dropped;

        if (oldest == 0 || oldest > until)
            continue;
        spinlock_acquire(&log->lock);
        dropped = drop_until(log, until, &keys);
        spinlock_release(&log->lock);
        if (UNLIKELY(dropped != NULL))
            noted_chunks_release(log, dropped, release, context);
    }
    return keys;
}

void noted_steps_trim(struct noted_steps *steps)
{
    for (uint32_t i = 0; i < NOTED_LOGS; i++) {
        struct noted_log *log = &steps->logs[i];
        struct noted_chunk *spare, *rest;
        uint32_t count;

        spinlock_acquire(&log->lock);
        spare = log->spare;
        count = log->first != NULL ? (log->spare_count + SPARE_PART - 1) / SPARE_PART : log->spare_count;
        rest = spare;
        for (uint32_t k = 0; k < count; k++)
            rest = rest->next;
        log->spare = rest;
        log->spare_count -= count;
        spinlock_release(&log->lock);
        while (spare != rest) {
            struct noted_chunk *next = spare->next;

            mem_free(spare);
            spare = next;
        }
    }
}

/* ------------------------------------------------------------------------------------------------------- taking -- */

struct taken_step {
    struct merge_place place;
    size_t at; /* in the copies */
};

struct taking {
    struct buffer copies;
    struct {
        struct taken_step *items;
        uint32_t count, capacity;
    } taken;
};

/* The last one first. */
static void take_chain(struct noted_log *log, uint32_t stripe, struct taking *taking)
{
    struct noted_link link;

    spinlock_acquire(&log->lock);
    link = heads_of(log)[stripe];
    heads_of(log)[stripe] = (struct noted_link){0};
    while (link.chunk != NULL && log->first != NULL && link.number >= log->first->number) {
        struct noted_chunk *chunk = link.chunk;
        struct noted_packed *packed = (struct noted_packed *)(chunk->bytes + (size_t)link.at * 8);
        struct noted_step step;
        const size_t size = unpack((const char *)packed, &step);

        *ARRAY_PUSH(&taking->taken) = (struct taken_step){step.place, taking->copies.size};
        buffer_append(&taking->copies, packed, size);
        link = packed->before;
        packed->owns = false;
        chunk->live--;
        chunk->keys -= packed->is_first;
        chunk->taken_bytes += size;
        noted_add_count(&log->keys, 0 - (uint64_t)packed->is_first);
        noted_add_count(&log->taken_bytes, size);
        if (chunk->live == 0 && chunk != log->last) {
            unlink_chunk(log, chunk);
            keep_spare(log, chunk);
        }
    }
    spinlock_release(&log->lock);
}

static int compare_places(const void *left, const void *right)
{
    const struct taken_step *one = left, *other = right;

    if (merge_place_before(one->place, other->place))
        return -1;
    return merge_place_before(other->place, one->place) ? 1 : 0;
}

/* Steps of one key were made in the order of their places; of several keys in any. */
static void arrange(struct taken_step *steps, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (merge_place_before(steps[i].place, steps[i - 1].place))
            continue;
        qsort(steps, count, sizeof(*steps), compare_places);
        return;
    }
    for (uint32_t i = 0; i < count / 2; i++) {
        const struct taken_step last = steps[count - 1 - i];

        steps[count - 1 - i] = steps[i];
        steps[i] = last;
    }
}

void noted_steps_take(struct noted_steps *steps, uint32_t stripe,
                      void (*visit)(const struct noted_step *step, void *context), void *context)
{
    struct taking taking = {0};
    struct noted_step step;

    for (uint32_t i = 0; i < NOTED_LOGS; i++) {
        if (heads_of(&steps->logs[i]) != NULL)
            take_chain(&steps->logs[i], stripe, &taking);
    }
    arrange(taking.taken.items, taking.taken.count);
    for (uint32_t i = 0; i < taking.taken.count; i++) {
        (void)unpack(taking.copies.data + taking.taken.items[i].at, &step);
        visit(&step, context);
    }
    ARRAY_FINI(&taking.taken);
    buffer_fini(&taking.copies);
}

/* ------------------------------------------------------------------------------------------------------- counts -- */

static uint64_t sum(const struct noted_steps *steps, size_t of)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < NOTED_LOGS; i++)
        total += atomic_load_explicit((_Atomic uint64_t *)((char *)(uintptr_t)&steps->logs[i] + of),
                                      memory_order_relaxed);
    return total;
}

uint64_t noted_steps_oldest(const struct noted_steps *steps)
{
    uint64_t least = 0;

    for (uint32_t i = 0; i < NOTED_LOGS; i++) {
        const uint64_t oldest = atomic_load_explicit(&steps->logs[i].oldest, memory_order_relaxed);

        if (oldest != 0)
            least = least != 0 ? MIN(least, oldest) : oldest;
    }
    return least;
}

uint64_t noted_steps_bytes(const struct noted_steps *steps)
{
    return sum(steps, offsetof(struct noted_log, bytes));
}

uint64_t noted_steps_taken_bytes(const struct noted_steps *steps)
{
    return sum(steps, offsetof(struct noted_log, taken_bytes));
}

uint64_t noted_steps_keys(const struct noted_steps *steps)
{
    return sum(steps, offsetof(struct noted_log, keys));
}
