/* maxmemory: above it every command first evicts keys, as maxmemory-policy says. Commands that may need memory are
 * refused if no key can be evicted.
 *
 * What is measured. Used memory (mem_used) is all allocated memory. A part of it is independent of the data, has a
 * bound of its own and is freed by itself. If it counted, keys would be evicted for it, and the effects of evictions
 * would cause more evictions. This part is set aside:
 *
 *   the journal     kept for readers and for repl-backlog-size, until it is freed; its copies for its file and from it;
 *                   and the buffer of the append-only file's writer
 *   the window      what active replication knows of keys beside the data (active-window-size, active-tombstones-limit)
 *   snapshots       old states that changes leave until they are written (snapshot-memory-limit), and the keys of
 *                   flushed databases until they are: an estimate, their share of the keys' number
 *   deliveries      to other workers, until their contents had one try to be sent (deliveries.h bounds them)
 *   output          until its first try to be sent, or while it waits for the disk; after that it counts
 *   replicas        output for them, and pieces of snapshots
 *   free blocks     for further output, some MiB a worker; half are freed each second; blocks that always stay count
 *
 * The rest is the counted memory. It is the one number that is compared with maxmemory, for eviction, for refusing
 * commands, transactions and scripts, and for force-eviction-percent. The memory set aside is INFO's
 * mem_not_counted_for_evict.
 *
 * What is about to be freed. Memory of values that have no key any more, until the background thread has freed it
 * (store/lazyfree.h: an estimate, and bounded), does count, but it is no reason to evict more keys, or to refuse a
 * command: above the limit by no more than this, commands run. Else a client that has deleted a large value would be
 * told that there is no room, and keys would go in its place.
 *
 * When it is checked. Once before a command: before EXEC for all its commands, before a script for all its calls. The
 * client keeps the result (CLIENT_MEMORY_SHORT): a script or transaction is not stopped half-way by its own memory.
 *
 * How far counted memory may exceed the limit: threads publish allocations in steps of MEM_PUBLISH_BYTES, and a worker
 * checks once for each group of GROUP_MOST commands, so by less than
 *
 *     workers x (MEM_PUBLISH_BYTES + GROUP_MOST x (largest argument + its entry)) + other threads x MEM_DRIFT_BYTES
 *
 * as long as eviction frees more for each command than commands allocate (maxmemory-eviction-tenacity bounds its
 * time). */
#pragma once

#include "base/compiler.h"
#include "base/mem.h"
#include "server/core/lifecycle.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle memory_limit_lifecycle;

struct client;
struct worker;

/* Atomic, relaxed. In bytes: the smaller of maxmemory and the limit by force-eviction-percent; 0: no limit. */
extern _Atomic uint64_t memory_limit;

/* Any thread. As exact as mem_used(). */
uint64_t memory_of_journal(void);
uint64_t memory_of_window(void); /* a tenth of a second ago */
uint64_t memory_set_aside(void); /* both, and the rest of the list above */
uint64_t memory_counted(void);

/* Likewise. Computes the memory set aside only if it matters. */
static inline bool memory_limit_is_reached(void)
{
    uint64_t limit = atomic_load_explicit(&memory_limit, memory_order_relaxed);

    return UNLIKELY(limit != 0) && mem_used() > limit && memory_counted() > limit;
}

enum memory_room {
    MEMORY_FINE,
    MEMORY_SHORT, /* above the limit, but more keys can be evicted or are about to be freed: commands may run */
    MEMORY_NONE   /* no key can be evicted */
};

/* Evicts until memory is below the limit, for as long as maxmemory-eviction-tenacity allows. A timer continues the
 * rest. The worker's thread, outside of the gate. */
must_check enum memory_room memory_make_room(struct worker *worker);
/* The same before a command of the client, by its worker: sets CLIENT_MEMORY_SHORT if memory stays above the limit,
 * otherwise clears it. */
void memory_look_for(struct client *client);

/* Main thread, once, before the workers start: `bytes` returns the memory for replicas. Any thread calls it. */
void memory_limit_of_replicas(uint64_t (*bytes)(void));
void memory_limit_setup(void); /* after config_setup: adds the options */
/* With the gate owned: there is no limit meanwhile, since a master decides what is evicted. */
void memory_limit_ignore(bool ignore);

/* For INFO; any thread. */
uint64_t memory_exceeded_total_ms(void); /* time above the limit */
uint64_t memory_exceeded_current_ms(void);
bool memory_available(uint64_t *bytes); /* of the machine; false: not measured (force-eviction-percent 0) */
