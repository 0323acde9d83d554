/* Memory allocation and accounting, with jemalloc or, with -DMEM_LIBC (for sanitizers), the C library.
 *
 * jemalloc counts for each thread how many bytes it has allocated and freed, in size classes, that is the memory really
 * taken. The part of this count that is not yet in the one global number is the thread's drift. Each call of a function
 * here looks at the drift, and publishes it when it has reached MEM_DRIFT_BYTES. So mem_used() is off by less than
 * MEM_DRIFT_BYTES for each thread, whatever the thread does, and a thread that ends publishes everything. No code has
 * to remember to publish. A thread that needs a closer number calls mem_thread_publish; workers do so after each batch.
 * A thread that never registers is not counted. A thread may free memory of another thread: the sums are over all
 * threads.
 *
 * mem_alloc and similar functions are for sizes that the program chooses: they never return NULL; without memory they
 * end the program. mem_try_* are for sizes that a client or a file chooses: they return NULL without memory, and tests
 * can make them fail (FAULT_MEMORY). Any thread may call all functions here. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MEM_DRIFT_BYTES = 64 << 10, /* a thread publishes its drift at this size */
    MEM_PUBLISH_BYTES = 4096    /* the drift is smaller than this after mem_thread_publish */
};

void *mem_alloc(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));
void *mem_alloc_zero(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));
void *mem_aligned_alloc(size_t alignment, size_t size) __attribute__((malloc, alloc_size(2), returns_nonnull));
void *mem_realloc(void *memory, size_t size) __attribute__((alloc_size(2), returns_nonnull));
void *mem_try_alloc(size_t size) __attribute__((malloc, alloc_size(1)));
void *mem_try_alloc_zero(size_t size) __attribute__((malloc, alloc_size(1)));
void *mem_try_realloc(void *memory, size_t size) __attribute__((alloc_size(2))); /* NULL: the old block is unchanged */
char *mem_copy_text(const char *text) __attribute__((malloc, returns_nonnull));
void *mem_copy(const void *data, size_t size) __attribute__((malloc, returns_nonnull)); /* a zero byte follows it */

void mem_free(void *memory);                    /* accepts NULL; also for mem_aligned_alloc */
void mem_free_sized(void *memory, size_t size); /* `size` is the size asked for; debug builds check it */

size_t mem_usable(const void *memory); /* the size of the block in the allocator; 0 for NULL */
size_t mem_good_size(size_t size);     /* the size of the block that mem_alloc(size) would take */

/* --- accounting --- */
void mem_thread_start(void);   /* each thread calls it at its start; thread_start does it */
void mem_thread_stop(void);    /* publishes the rest; thread_start does it at the end */
void mem_thread_publish(void); /* publishes a drift of MEM_PUBLISH_BYTES or more; a few instructions */

/* Bytes that the calling thread has allocated since its start, by any function. With MEM_LIBC: bytes of mem_* that were
 * not freed again. Async-signal-safe. */
uint64_t mem_thread_allocated(void);

size_t mem_used(void);          /* bytes published by all threads, plus the drift of this thread */
size_t mem_peak(void);          /* the largest mem_used() seen at a publish or a call of mem_used */
int64_t mem_peak_wall_ms(void); /* when that was; of threads that raise it at once any one's time */
void mem_reset_peak(void);

/* --- statistics, too slow for each command --- */
struct mem_stats {
    size_t allocated; /* jemalloc's own sum, exact */
    size_t active;    /* pages with at least one live block */
    size_t resident;  /* pages that are mapped and touched */
    size_t metadata;
    size_t retained; /* address space that is kept without pages */
    size_t mapped;
    size_t muzzy; /* freed pages that the system takes back lazily */
};
void mem_stats(struct mem_stats *stats); /* with MEM_LIBC the fields that mallinfo2 knows; the rest is 0 */
size_t mem_rss(void);                    /* resident set of the process in bytes; async-signal-safe */
size_t mem_system_total(void);           /* memory of the machine in bytes */
void mem_purge(void);                    /* returns unused pages to the system */
/* The allocator's own purging threads (jemalloc-bg-thread); does nothing with MEM_LIBC. */
void mem_background_threads(bool on);
const char *mem_allocator_name(void); /* "jemalloc-5.3.0", "libc" */

/* Writes the text of the allocator's own report, in pieces. */
void mem_report(void (*write)(void *context, const char *text), void *context);
