/* Room in memory for what peers send. Their operations have happened, so none is refused, and they are applied beyond
 * maxmemory; keys that may go are evicted first. A tenth above it this node reads its links no more, until there is
 * room: evictions go on meanwhile, clients can delete, or the limit is raised. */
#pragma once

#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

struct worker;

bool room_is_there(struct worker *worker); /* worker 0, outside of the gate, before a batch of operations */
/* Any thread. What comes waits, since room_is_there was asked last; how often that began. */
bool room_is_waited_for(void);
uint64_t room_waits(void);
