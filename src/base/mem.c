#include "base/mem.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fork_guard.h"
#include "base/panic.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifndef MEM_LIBC
#include <jemalloc/jemalloc.h>

/* Read by jemalloc at start. Pages that were freed go back to the system within a second, by a thread of its own, also
 * while the server is idle: a growing keyspace leaves some 2 % of its memory behind otherwise. */
const char *malloc_conf = "background_thread:true,dirty_decay_ms:500,muzzy_decay_ms:0"; /* global: jemalloc's name */
#endif

/* Sum over all threads; signed, since one thread may publish freed memory before another publishes its allocation. */
static _Atomic int64_t published_sum; /* atomic: relaxed */
static _Atomic int64_t peak;          /* atomic: relaxed */
static _Atomic int64_t peak_wall_ms;  /* atomic: relaxed; when it was seen */

struct mem_thread {
    int64_t published; /* of this thread's balance */
#ifdef MEM_LIBC
    int64_t balance;
#else
    const uint64_t *allocated; /* jemalloc's counters of this thread */
    const uint64_t *freed;
#endif
};

#ifdef MEM_LIBC
static _Thread_local struct mem_thread self; /* owner: the thread */

static inline int64_t balance(void)
{
    return self.balance;
}
#else
static const uint64_t nothing; /* for threads that are not registered */
static _Thread_local struct mem_thread self = {.allocated = &nothing, .freed = &nothing}; /* owner: the thread */

static inline int64_t balance(void)
{
    return (int64_t)(*self.allocated - *self.freed);
}
#endif

/* --- the allocator --- */

static inline void *from_malloc(size_t size)
{
    void *memory;

    fork_guard_enter();
    memory = malloc(size == 0 ? 1 : size);
    fork_guard_leave();
    return memory;
}

static inline void *from_calloc(size_t size)
{
    void *memory;

    fork_guard_enter();
    memory = calloc(1, size == 0 ? 1 : size);
    fork_guard_leave();
    return memory;
}

static inline void *from_memalign(size_t alignment, size_t size)
{
    void *memory = NULL;
    int error;

    fork_guard_enter();
    error = posix_memalign(&memory, MAX(alignment, sizeof(void *)), size == 0 ? 1 : size);
    fork_guard_leave();
    return error == 0 ? memory : NULL;
}

static inline void *from_realloc(void *memory, size_t size)
{
    void *moved;

    fork_guard_enter();
    moved = realloc(memory, size == 0 ? 1 : size);
    fork_guard_leave();
    return moved;
}

static inline void to_free(void *memory)
{
    fork_guard_enter();
    free(memory);
    fork_guard_leave();
}

/* --- allocation --- */

NORETURN COLD static void out_of_memory(size_t size)
{
    panic("Out of memory allocating %zu bytes", size);
}

static void raise_peak(int64_t used)
{
    int64_t most = atomic_load_explicit(&peak, memory_order_relaxed);

    while (used > most) {
        if (!atomic_compare_exchange_weak_explicit(&peak, &most, used, memory_order_relaxed, memory_order_relaxed))
            continue;
        atomic_store_explicit(&peak_wall_ms, clock_wall_ms(), memory_order_relaxed);
        break;
    }
}

static COLD void publish(int64_t drift)
{
    int64_t sum = atomic_fetch_add_explicit(&published_sum, drift, memory_order_relaxed) + drift;

    self.published += drift;
    raise_peak(sum);
}

/* Something was allocated or freed. */
static inline void look_at_drift(int64_t most)
{
    int64_t drift = balance() - self.published;

    if (UNLIKELY(drift >= most || drift <= -most))
        publish(drift);
}

static inline void *counted(void *memory)
{
#ifdef MEM_LIBC
    self.balance += (int64_t)malloc_usable_size(memory);
#endif
    look_at_drift(MEM_DRIFT_BYTES);
    return memory;
}

static inline void uncount(void *memory)
{
#ifdef MEM_LIBC
    self.balance -= (int64_t)malloc_usable_size(memory);
#else
    (void)memory;
#endif
}

static bool fault_memory(void)
{
    enum fault_how how;

    return fault_hit(FAULT_MEMORY, &how);
}

void *mem_alloc(size_t size)
{
    void *memory = from_malloc(size);

    if (UNLIKELY(memory == NULL))
        out_of_memory(size);
    return counted(memory);
}

void *mem_alloc_zero(size_t size)
{
    void *memory = from_calloc(size);

    if (UNLIKELY(memory == NULL))
        out_of_memory(size);
    return counted(memory);
}

void *mem_aligned_alloc(size_t alignment, size_t size)
{
    void *memory = from_memalign(alignment, size);

    if (UNLIKELY(memory == NULL))
        out_of_memory(size);
    return counted(memory);
}

static void *resize(void *memory, size_t size)
{
    void *moved;

    if (memory == NULL)
        return counted(from_malloc(size));
    uncount(memory);
    moved = from_realloc(memory, size);
    counted(moved != NULL ? moved : memory);
    return moved;
}

void *mem_realloc(void *memory, size_t size)
{
    void *moved = resize(memory, size);

    if (UNLIKELY(moved == NULL))
        out_of_memory(size);
    return moved;
}

void *mem_try_alloc(size_t size)
{
    return fault_memory() ? NULL : counted(from_malloc(size));
}

void *mem_try_alloc_zero(size_t size)
{
    return fault_memory() ? NULL : counted(from_calloc(size));
}

void *mem_try_realloc(void *memory, size_t size)
{
    return fault_memory() ? NULL : resize(memory, size);
}

char *mem_copy_text(const char *text)
{
    return mem_copy(text, strlen(text));
}

void *mem_copy(const void *data, size_t size)
{
    char *copy = mem_alloc(size + 1);

    if (size != 0)
        memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}

void mem_free(void *memory)
{
    uncount(memory);
    to_free(memory);
    look_at_drift(MEM_DRIFT_BYTES);
}

void mem_free_sized(void *memory, size_t size)
{
    /* jemalloc 5.3.0: sdallocx costs more than free, hot (6.0 to 5.4 ns) and over a million cold blocks in random order
     * (12 to 8 ns). So the size is only checked. */
    debug_assert(memory == NULL || mem_usable(memory) >= size);
    (void)size;
    mem_free(memory);
}

size_t mem_usable(const void *memory)
{
    return malloc_usable_size((void *)(uintptr_t)memory);
}

size_t mem_good_size(size_t size)
{
#ifdef MEM_LIBC
    return size == 0 ? 1 : size; /* sanitizers watch the size that was asked for */
#else
    return nallocx(size == 0 ? 1 : size, 0);
#endif
}

/* --- accounting --- */

void mem_thread_start(void)
{
#ifndef MEM_LIBC
    uint64_t *counter;
    size_t size = sizeof(counter);

    if (self.allocated != &nothing)
        return;
    if (mallctl("thread.deallocatedp", &counter, &size, NULL, 0) != 0)
        panic("The allocator was built without statistics");
    self.freed = counter;
    if (mallctl("thread.allocatedp", &counter, &size, NULL, 0) != 0)
        panic("The allocator was built without statistics");
    self.allocated = counter;
#endif
    publish(balance() - self.published);
}

void mem_thread_stop(void)
{
    publish(balance() - self.published);
}

void mem_thread_publish(void)
{
    look_at_drift(MEM_PUBLISH_BYTES);
}

uint64_t mem_thread_allocated(void)
{
#ifdef MEM_LIBC
    return (uint64_t)balance();
#else
    return *self.allocated;
#endif
}

size_t mem_used(void)
{
    int64_t used = atomic_load_explicit(&published_sum, memory_order_relaxed) + balance() - self.published;

    raise_peak(used);
    return used < 0 ? 0 : (size_t)used;
}

size_t mem_peak(void)
{
    return (size_t)MAX(atomic_load_explicit(&peak, memory_order_relaxed), 0);
}

int64_t mem_peak_wall_ms(void)
{
    return atomic_load_explicit(&peak_wall_ms, memory_order_relaxed);
}

void mem_reset_peak(void)
{
    atomic_store_explicit(&peak, 0, memory_order_relaxed);
    (void)mem_used();
}

/* --- statistics --- */

size_t mem_rss(void)
{
    char text[128];
    char *second;
    ssize_t got;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return mem_used();
    got = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (got <= 0)
        return mem_used();
    text[got] = '\0';
    second = strchr(text, ' ');
    return second != NULL ? (size_t)strtoull(second, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : mem_used();
}

size_t mem_system_total(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);

    return pages > 0 && page_bytes > 0 ? (size_t)pages * (size_t)page_bytes : 0;
}

#ifdef MEM_LIBC
void mem_stats(struct mem_stats *stats)
{
    struct mallinfo2 info = mallinfo2();

    *stats = (struct mem_stats){0};
    stats->allocated = info.uordblks + info.hblkhd;
    stats->mapped = info.arena + info.hblkhd;
    stats->active = stats->mapped;
    stats->resident = stats->mapped;
}

void mem_purge(void)
{
    malloc_trim(0);
}

void mem_background_threads(bool on)
{
    (void)on;
}

const char *mem_allocator_name(void)
{
    return "libc";
}

void mem_report(void (*write)(void *context, const char *text), void *context)
{
    write(context, "Stats not supported for the current allocator");
}
#else
static size_t read_size(const char *name)
{
    size_t value = 0;
    size_t size = sizeof(value);

    return mallctl(name, &value, &size, NULL, 0) == 0 ? value : 0;
}

/* Pages freed lazily, over all arenas. */
static size_t read_muzzy(void)
{
    char name[64];

    snprintf(name, sizeof(name), "stats.arenas.%u.pmuzzy", (unsigned)MALLCTL_ARENAS_ALL);
    return read_size(name) * (size_t)sysconf(_SC_PAGESIZE);
}

void mem_stats(struct mem_stats *stats)
{
    uint64_t epoch = 1;
    size_t size = sizeof(epoch);

    /* Statistics are a snapshot; writing the epoch takes a new one. */
    if (mallctl("epoch", &epoch, &size, &epoch, size) != 0)
        panic("The allocator has no epoch: its statistics cannot be refreshed");
    stats->allocated = read_size("stats.allocated");
    stats->active = read_size("stats.active");
    stats->resident = read_size("stats.resident");
    stats->metadata = read_size("stats.metadata");
    stats->retained = read_size("stats.retained");
    stats->mapped = read_size("stats.mapped");
    stats->muzzy = read_muzzy();
}

void mem_purge(void)
{
    char name[64];

    snprintf(name, sizeof(name), "arena.%u.purge", (unsigned)MALLCTL_ARENAS_ALL);
    (void)mallctl("thread.tcache.flush", NULL, NULL, NULL, 0); /* fails only where there is none */
    (void)mallctl(name, NULL, NULL, NULL, 0);
}

void mem_background_threads(bool on)
{
    (void)mallctl("background_thread", NULL, NULL, &on, sizeof(on)); /* not on every system; purging works without */
}

const char *mem_allocator_name(void)
{
    static const char name[] = {
        "jemalloc-"
#define NAME_TEXT_(number) #number
#define NAME_TEXT(number) NAME_TEXT_(number)
        NAME_TEXT(JEMALLOC_VERSION_MAJOR) "." NAME_TEXT(JEMALLOC_VERSION_MINOR) "." NAME_TEXT(JEMALLOC_VERSION_BUGFIX)};
    return name;
}

void mem_report(void (*write)(void *context, const char *text), void *context)
{
    malloc_stats_print(write, context, NULL);
}
#endif
