/* Memory, and the count of it. jemalloc (or, with -DMEM_LIBC, the C library, for sanitizers).
 *
 * jemalloc keeps, for each thread, how many bytes it has allocated and freed (size classes, so what is really taken).
 * What of that is not yet in the one global number, the thread's drift, each call here looks at, and publishes when it
 * has grown to MEM_DRIFT_BYTES. So whatever a thread does and for however long, mem_used() is off by less than
 * MEM_DRIFT_BYTES for it, and a thread that ends leaves nothing behind; nobody has to remember to publish. Who wants
 * the number closer, as workers do after each batch, calls mem_thread_publish. A thread that never registers is not
 * counted at all. Freeing what another thread allocated works by nature: the sums are over all.
 *
 * mem_alloc and friends are for sizes we chose: they never return NULL but end the program. mem_try_* are for sizes
 * that a stranger chose: NULL, and tests can make them fail (FAULT_MEMORY). Any thread may call everything here. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MEM_DRIFT_BYTES = 64 << 10, /* what a thread keeps to itself at most */
    MEM_PUBLISH_BYTES = 4096    /* likewise after mem_thread_publish */
};

void *mem_alloc(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));
void *mem_alloc_zero(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));
void *mem_aligned_alloc(size_t alignment, size_t size) __attribute__((malloc, alloc_size(2), returns_nonnull));
void *mem_realloc(void *memory, size_t size) __attribute__((alloc_size(2), returns_nonnull));
void *mem_try_alloc(size_t size) __attribute__((malloc, alloc_size(1)));
void *mem_try_alloc_zero(size_t size) __attribute__((malloc, alloc_size(1)));
void *mem_try_realloc(void *memory, size_t size) __attribute__((alloc_size(2))); /* NULL: the old one is untouched */
char *mem_copy_text(const char *text) __attribute__((malloc, returns_nonnull));
void *mem_copy(const void *data, size_t size) __attribute__((malloc, returns_nonnull)); /* a zero byte follows it */

void mem_free(void *memory);                    /* NULL is fine; also for mem_aligned_alloc */
void mem_free_sized(void *memory, size_t size); /* `size` as asked for; debug builds check it */

size_t mem_usable(const void *memory); /* what the block really holds; 0 for NULL */
size_t mem_good_size(size_t size);     /* what a block of `size` would take */

/* --- accounting --- */
void mem_thread_start(void);   /* by each thread at its start; thread_start does it */
void mem_thread_stop(void);    /* publishes what is left; thread_start does it at the end */
void mem_thread_publish(void); /* what is MEM_PUBLISH_BYTES or more; a few instructions */

/* What the calling thread has ever allocated, by whatever function; with MEM_LIBC only what mem_* have not freed again.
 * Async-signal-safe. */
uint64_t mem_thread_allocated(void);

size_t mem_used(void); /* published by all + what this thread has not published yet */
size_t mem_peak(void); /* the largest mem_used() seen at a publish or a call of mem_used */
void mem_reset_peak(void);

/* --- statistics, not for the hot path --- */
struct mem_stats {
    size_t allocated; /* jemalloc's own sum, exact */
    size_t active;    /* pages with at least one live block */
    size_t resident;  /* pages that are mapped and touched */
    size_t metadata;
    size_t retained; /* address space kept, without pages */
    size_t mapped;
    size_t muzzy; /* freed pages given back lazily */
};
void mem_stats(struct mem_stats *stats); /* with MEM_LIBC what mallinfo2 knows, the rest 0 */
size_t mem_rss(void);                    /* resident set of the process; async-signal-safe */
size_t mem_system_total(void);           /* memory of the machine */
void mem_purge(void);                    /* gives unused pages back to the system */
void mem_background_threads(bool on);    /* jemalloc's own purging threads (jemalloc-bg-thread); no-op with MEM_LIBC */
const char *mem_allocator_name(void);    /* "jemalloc-5.3.0", "libc" */

/* The text of the allocator's own report, in pieces. */
void mem_report(void (*write)(void *context, const char *text), void *context);
