/* Steps of many keys in the order in which each thread made them, packed one behind the other: what the window
 * (window.h) keeps of them as long as nobody asks for a key. Most are settled before that, and then go a whole chunk
 * at a time, without a look at any of them.
 *
 * There is a log for each thread, or for a few that share it, so memory is written in order. The steps of a stripe in
 * a log are a chain, from the last to the first. A chunk goes when all of its steps are settled, or taken; chunks are
 * numbered, so who meets a link sees whether its chunk is still there.
 *
 * Each log has its lock (rank LOCK_NOTED), which functions take themselves; any thread may call them. It keeps copies
 * of all bytes, and takes over what undos own. */
#pragma once

#include "base/assert.h"
#include "base/compiler.h"
#include "base/copy.h"
#include "base/slice.h"
#include "base/spinlock.h"
#include "base/write_ahead.h"
#include "merge/place.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { NOTED_LOGS = 32, NOTED_CHUNK_BYTES = 32 * 1024 };

struct noted_step {
    struct merge_place place, base; /* base: of the key's last operation before */
    uint64_t previous;              /* the origin's stamp before */
    int64_t wall;
    uint64_t hash;
    uint32_t db;
    bool base_overwrote;
    bool existed;                   /* the key, before it; behind it, it does */
    bool is_first;                  /* of its key, as far as is known */
    bool owns;                      /* its undo has to be released */
    struct slice name, words, undo; /* undo: an image (undo.h), of a multiple of 8 bytes; empty: none */
};

/* A step in a chunk. Chunk NULL: none. */
struct noted_link {
    struct noted_chunk *chunk;
    uint64_t number : 48; /* of the chunk */
    uint64_t at : 16;     /* in words of 8 bytes */
};

/* As what steps stand in a chunk, before words, name (each made a multiple of 8 bytes) and undo. */
struct noted_packed {
    struct noted_link before; /* of the same stripe */
    struct merge_place place, base;
    uint64_t previous;
    int64_t wall;
    uint64_t hash;
    uint32_t db, name_size, words_size, undo_size;
    uint32_t name_at; /* in the words; NOTED_APART: not there */
    bool base_overwrote, existed, is_first, owns;
};
#define NOTED_APART UINT32_MAX

struct noted_chunk {
    struct noted_chunk *before, *next;
    uint64_t number;
    uint64_t stamp; /* the greatest */
    size_t used, capacity;
    uint32_t live; /* steps that were not taken */
    uint32_t keys; /* of these, that were the first of their key */
    size_t taken_bytes;
    bool owns;                       /* one of its steps does */
    _Alignas(uint64_t) char bytes[]; /* of struct noted_packed */
};

struct CACHE_ALIGNED noted_log {
    struct spinlock lock; /* rank LOCK_NOTED */
    struct noted_chunk *first, *last;
    struct noted_chunk *spare; /* of NOTED_CHUNK_BYTES */
    uint32_t spare_count;
    uint64_t last_number;
    /* For each stripe, its last step. NULL: there was none yet. Atomic: relaxed, as are those below; written with the
     * lock held. */
    struct noted_link *_Atomic heads;
    _Atomic uint64_t bytes, keys, taken_bytes; /* bytes: of chunks; taken_bytes: of these, for nothing */
    _Atomic uint64_t oldest;                   /* the greatest stamp of the first chunk; 0: there is none */
};

struct noted_steps {
    uint32_t stripe_count; /* const */
    struct noted_log logs[NOTED_LOGS];
};

/* What releases a step that owns something; the log's lock is not held. */
typedef void noted_release(const struct noted_step *step, void *context);

void noted_steps_init(struct noted_steps *steps, uint32_t stripe_count);
void noted_steps_fini(struct noted_steps *steps); /* all steps were dropped or taken */

/* --- one step --- */

static inline size_t noted_padded(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

static inline bool noted_is_within(struct slice part, struct slice whole)
{
    const uintptr_t at = (uintptr_t)part.data, begin = (uintptr_t)whole.data;

    return at >= begin && at - begin + part.size <= whole.size;
}

/* With the log's lock held: makes room, after it has dropped what is settled: that has to be released. */
struct noted_chunk *noted_log_make_room(struct noted_log *log, uint32_t stripe_count, size_t size, uint64_t frontier);
/* Behind that, and without the lock: `dropped` is what it returned. */
void noted_chunks_release(struct noted_log *log, struct noted_chunk *dropped, noted_release *release, void *context);

static ALWAYS_INLINE void noted_add_count(_Atomic uint64_t *count, uint64_t more)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + more, memory_order_relaxed);
}

/* Returns how many bytes it takes. Here, so that what the caller knows of the step is not written down in between. */
static ALWAYS_INLINE size_t noted_steps_add(struct noted_steps *steps, uint32_t stripe, const struct noted_step *step,
                                            uint64_t frontier, noted_release *release, void *context)
{
    const bool name_in_words = noted_is_within(step->name, step->words);
    const size_t name_bytes = name_in_words ? 0 : noted_padded(step->name.size);
    const size_t words_bytes = noted_padded(step->words.size);
    const size_t size = sizeof(struct noted_packed) + name_bytes + words_bytes + step->undo.size;
    struct noted_log *log = &steps->logs[spinlock_self_id() % NOTED_LOGS];
    struct noted_chunk *dropped = NULL, *chunk;
    struct noted_packed *packed;
    struct noted_link *head;
    char *at;

    debug_assert(step->undo.size % 8 == 0 && step->name.size < NOTED_APART && step->words.size <= UINT32_MAX);
    spinlock_acquire(&log->lock);
    chunk = log->last;
    if (UNLIKELY(chunk == NULL || chunk->capacity - chunk->used < size)) {
        dropped = noted_log_make_room(log, steps->stripe_count, size, frontier);
        chunk = log->last;
    }
    packed = (struct noted_packed *)(chunk->bytes + chunk->used);
    head = &atomic_load_explicit(&log->heads, memory_order_relaxed)[stripe];
    write_ahead(packed);
    packed->before = *head;
    packed->place = step->place;
    packed->base = step->base;
    packed->previous = step->previous;
    packed->wall = step->wall;
    packed->hash = step->hash;
    packed->db = step->db;
    packed->name_size = (uint32_t)step->name.size;
    packed->words_size = (uint32_t)step->words.size;
    packed->undo_size = (uint32_t)step->undo.size;
    packed->name_at = name_in_words ? (uint32_t)(step->name.data - step->words.data) : NOTED_APART;
    packed->base_overwrote = step->base_overwrote;
    packed->existed = step->existed;
    packed->is_first = step->is_first;
    packed->owns = step->owns;
    at = (char *)(packed + 1);
    copy_word(at, step->words.data, step->words.size);
    at += words_bytes;
    if (UNLIKELY(!name_in_words))
        copy_word(at, step->name.data, step->name.size);
    copy_word(at + name_bytes, step->undo.data, step->undo.size);
    *head = (struct noted_link){chunk, chunk->number, (uint16_t)(chunk->used / 8)};
    chunk->used += size;
    chunk->stamp = MAX(chunk->stamp, step->place.stamp);
    chunk->live++;
    chunk->keys += step->is_first;
    chunk->owns |= step->owns;
    noted_add_count(&log->keys, step->is_first);
    if (chunk == log->first)
        atomic_store_explicit(&log->oldest, chunk->stamp, memory_order_relaxed);
    spinlock_release(&log->lock);
    if (UNLIKELY(dropped != NULL))
        noted_chunks_release(log, dropped, release, context);
    return size;
}

/* Fetches into the cache what a step of the stripe touches first. */
static inline void noted_steps_prefetch(const struct noted_steps *steps, uint32_t stripe)
{
    const struct noted_log *log = &steps->logs[spinlock_self_id() % NOTED_LOGS];

    __builtin_prefetch(atomic_load_explicit(&log->heads, memory_order_relaxed) + stripe, 1);
}

/* --- many --- */

/* Takes all steps of a stripe, which the caller holds, in the order of their places; `visit` gets what they own. */
void noted_steps_take(struct noted_steps *steps, uint32_t stripe,
                      void (*visit)(const struct noted_step *step, void *context), void *context);
/* Drops chunks of which no step is younger than this. Returns how many keys. */
uint64_t noted_steps_drop(struct noted_steps *steps, uint64_t until, noted_release *release, void *context);
/* Frees some of the memory that was kept for steps to come; all of it where there are none. Now and then. */
void noted_steps_trim(struct noted_steps *steps);

/* Without a lock: they read relaxed. */
uint64_t noted_steps_oldest(const struct noted_steps *steps); /* the least stamp at which a chunk goes; 0: none does */
uint64_t noted_steps_bytes(const struct noted_steps *steps);
uint64_t noted_steps_taken_bytes(const struct noted_steps *steps); /* of these, for steps that were taken */
uint64_t noted_steps_keys(const struct noted_steps *steps);
