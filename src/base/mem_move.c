#include "base/mem_move.h"

#include "base/mem.h"

#include <stdatomic.h>
#include <string.h>
#ifndef MEM_LIBC
#include <jemalloc/jemalloc.h>
#endif

static _Atomic bool everything; /* atomic: relaxed */

void mem_move_everything(bool on)
{
    atomic_store_explicit(&everything, on, memory_order_relaxed);
}

bool mem_move_is_everything(void)
{
    return atomic_load_explicit(&everything, memory_order_relaxed);
}

#ifdef MEM_LIBC

bool mem_move_is_possible(void)
{
    return mem_move_is_everything();
}

static bool is_worth_moving(void *memory)
{
    (void)memory;
    return false;
}

static void *move(void *memory, size_t alignment)
{
    size_t size = mem_usable(memory);
    void *copy = mem_aligned_alloc(alignment, size);

    memcpy(copy, memory, size);
    mem_free(memory);
    return copy;
}

#else

enum {
    SLAB_SHARE = 7,  /* a slab's share of holes must come to so many eighths of its bin's */
    HOLES_LEAST = 32 /* a bin with less than one block in so many free is left alone */
};

/* The result of "experimental.utilization.query" for a block. */
struct utilization {
    char *current_slab; /* from which its bin allocates now */
    size_t slab_free;   /* blocks of its slab */
    size_t slab_count;
    size_t slab_bytes;
    size_t bin_free; /* and of the whole bin */
    size_t bin_count;
};

enum { NAME_WORDS = 3 };

/* A name of the allocator's, looked up once a thread. */
struct control {
    size_t words[NAME_WORDS];
    size_t count; /* 0: not looked up */
};

static _Thread_local struct control query, lookup; /* owner: the thread */

static bool control_find(struct control *control, const char *name)
{
    if (control->count != 0)
        return true;
    control->count = NAME_WORDS;
    if (mallctlnametomib(name, control->words, &control->count) != 0)
        control->count = 0;
    return control->count != 0;
}

static bool ask(void *memory, struct utilization *utilization)
{
    size_t size = sizeof(*utilization);

    return control_find(&query, "experimental.utilization.query") &&
           mallctlbymib(query.words, query.count, utilization, &size, &memory, sizeof(memory)) == 0 &&
           size == sizeof(*utilization);
}

bool mem_move_is_possible(void)
{
    struct utilization utilization;
    void *probe = mem_alloc(1);
    bool answers = ask(probe, &utilization);

    mem_free(probe);
    return answers || mem_move_is_everything();
}

static bool is_worth_moving(void *memory)
{
    struct utilization of;
    const char *block = memory;

    if (!ask(memory, &of) || of.slab_count <= 1 || of.slab_free == 0)
        return false;
    if (of.bin_free < of.slab_count || of.bin_free * HOLES_LEAST < of.bin_count)
        return false;
    if (block >= of.current_slab && block < of.current_slab + of.slab_bytes)
        return false;
    return of.slab_free * of.bin_count * 8 >= of.bin_free * of.slab_count * SLAB_SHARE;
}

/* Back to the arena it came from; past the cache of the thread. */
static int flags_for(void *memory, size_t alignment)
{
    unsigned arena;
    size_t size = sizeof(arena);
    int flags = MALLOCX_TCACHE_NONE;

    if (alignment > 1)
        flags |= MALLOCX_ALIGN(alignment);
    if (control_find(&lookup, "arenas.lookup") &&
        mallctlbymib(lookup.words, lookup.count, &arena, &size, &memory, sizeof(memory)) == 0)
        flags |= MALLOCX_ARENA(arena);
    return flags;
}

/* No memory: then it stays where it is. */
static void *move(void *memory, size_t alignment)
{
    size_t size = sallocx(memory, 0);
    void *copy = mallocx(size, flags_for(memory, alignment));

    if (copy == NULL)
        return memory;
    memcpy(copy, memory, size);
    dallocx(memory, MALLOCX_TCACHE_NONE);
    return copy;
}

#endif

void *mem_move(struct mem_mover *mover, void *memory, size_t alignment)
{
    void *moved = memory;

    if (memory == NULL)
        return NULL;
    if (is_worth_moving(memory) || UNLIKELY(mem_move_is_everything()))
        moved = move(memory, alignment);
    if (moved != memory)
        mover->moved++;
    else
        mover->stayed++;
    return moved;
}
