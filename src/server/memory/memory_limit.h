/* maxmemory: above it every command first makes room by eviction, as the policy says, and commands that may need memory
 * are refused when there is nothing to evict.
 *
 * What is measured. Used memory (mem_used) is all that is allocated. Some of it is no matter of the data, has a bound
 * of its own and goes by itself: if it counted, keys would go for it, and what their going tells others would drive out
 * more. That is set aside:
 *
 *   the journal     kept for readers and for repl-backlog-size, and the buffer of who writes the file
 *   deliveries         to other workers, until what they bring has had one try to be sent (deliveries.h bounds them)
 *   output          until its one try to be sent, or while it waits for the disk; what a client does not take counts
 *   free blocks     for output to come, some MiB a worker; half of them go each second, and those that stay count
 *
 * The rest is the counted memory. It is the one number that maxmemory is compared with, whoever asks: eviction, the
 * refusal of commands, transactions and scripts, force-eviction-percent. What is set aside is INFO's
 * mem_not_counted_for_evict.
 *
 * When it is asked. Once before a command: before EXEC for all that is in it, before a script for all that it calls.
 * What the answer was, the client keeps (CLIENT_MEMORY_SHORT): what a script or transaction takes does not stop it
 * half-way.
 *
 * How far counted memory may pass the limit: threads publish what they have taken in steps of MEM_PUBLISH_BYTES, and a
 * worker checks once a group of GROUP_MOST commands, so by less than
 *
 *     workers x (MEM_PUBLISH_BYTES + GROUP_MOST x (largest argument + its entry)) + other threads x MEM_DRIFT_BYTES
 *
 * as long as eviction frees more a command than commands bring (maxmemory-eviction-tenacity bounds the time it takes).
 */
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

/* Atomic, relaxed. Bytes: the smaller of maxmemory and what force-eviction-percent leaves us; 0: no limit. */
extern _Atomic uint64_t memory_limit;

/* Any thread. Off by what mem_used() is off by. */
uint64_t memory_of_journal(void);
uint64_t memory_set_aside(void); /* that, and the rest of the list above */
uint64_t memory_counted(void);

/* Likewise. What is set aside is only looked at when it matters. */
static inline bool memory_limit_is_reached(void)
{
    uint64_t limit = atomic_load_explicit(&memory_limit, memory_order_relaxed);

    return UNLIKELY(limit != 0) && mem_used() > limit && memory_counted() > limit;
}

enum memory_room {
    MEMORY_FINE,
    MEMORY_SHORT, /* there is still too much, but more will go soon: commands may run */
    MEMORY_NONE   /* there is nothing that may go */
};

/* Evicts until memory is below the limit, for as long as maxmemory-eviction-tenacity allows; what is left to do is done
 * by a timer. The worker's thread, outside of the gate. */
must_check enum memory_room memory_make_room(struct worker *worker);
/* The same before a command of the client: CLIENT_MEMORY_SHORT is set if there is no room to be had, else cleared. */
void memory_look_for(struct client *client);

void memory_limit_setup(void); /* after config_setup: adds the options */

/* For INFO; any thread. */
uint64_t memory_exceeded_total_ms(void); /* time spent above the limit */
uint64_t memory_exceeded_current_ms(void);
bool memory_available(uint64_t *bytes); /* of the machine; false: nobody asked (force-eviction-percent 0) */
