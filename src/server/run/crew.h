/* Work that the owner of the gate shares with the other workers: while the gate is closed they have nothing to do with
 * the data anyway. The work is cut into parts, and each part is run by one thread. Nobody is waited for who has not
 * begun: the owner runs the parts that are left. */
#pragma once

#include "server/core/lifecycle.h"

#include <stdint.h>

struct worker;

extern const struct lifecycle crew_lifecycle;

enum { CREW_PARTS_MOST = 64 };

/* The worker's thread; it owns the gate by its member. Returns when all parts have run. `run` is called in the thread
 * of the given worker, which counts as alone; parts must not touch the same data. */
void crew_run(struct worker *leader, uint32_t part_count,
              void (*run)(struct worker *worker, uint32_t part, void *context), void *context);
