/* maxmemory: above it every command first makes room by eviction, as the policy says, and commands that may need memory
 * are refused when there is nothing to evict.
 *
 * How far used memory may pass the limit: threads publish what they have taken in steps of MEM_PUBLISH_BYTES, and a
 * worker checks once a group of GROUP_MOST commands, so by less than
 *
 *     workers x (MEM_PUBLISH_BYTES + GROUP_MOST x (largest argument + its entry))
 *
 * as long as eviction frees more a command than commands bring (maxmemory-eviction-tenacity bounds the time it takes).
 */
#pragma once

#include "base/compiler.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct worker;

/* Atomic, relaxed. Bytes: the smaller of maxmemory and what force-eviction-percent leaves us; 0: no limit. */
extern _Atomic uint64_t memory_limit;

/* Any thread. Off by what mem_used() is off by. */
static inline bool memory_limit_is_reached(void)
{
    uint64_t limit = atomic_load_explicit(&memory_limit, memory_order_relaxed);

    return UNLIKELY(limit != 0) && mem_used() > limit;
}

enum memory_room {
    MEMORY_FINE,
    MEMORY_SHORT, /* there is still too much, but more will go soon: commands may run */
    MEMORY_NONE   /* there is nothing that may go */
};

/* Evicts until memory is below the limit, for as long as maxmemory-eviction-tenacity allows; what is left to do is done
 * by a timer. The worker's thread, outside of the gate. */
enum memory_room memory_make_room(struct worker *worker);

void memory_limit_setup(void);  /* after config_setup: adds the options */
void memory_limit_start(void);  /* after config_load */
void memory_limit_sample(void); /* worker 0, ten times a second: force-eviction-percent */

/* For INFO; any thread. */
uint64_t memory_not_counted(void); /* of used memory: what the limit does not look at */
uint64_t memory_exceeded_total_ms(void); /* time spent above the limit */
uint64_t memory_exceeded_current_ms(void);
bool memory_available(uint64_t *bytes); /* of the machine; false: nobody asked (force-eviction-percent 0) */
