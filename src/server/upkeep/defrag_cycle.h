/* activedefrag: when memory is defragmented, and how much time workers spend on it. store/defrag.h does the work.
 *
 * Once a second worker 0 compares the memory that the allocator holds (active) with the memory in use (allocated). If
 * the holes are at least active-defrag-ignore-bytes and active-defrag-threshold-lower percent, every worker walks its
 * share of the stripes. Together the workers take active-defrag-cycle-min percent of a processor's time, up to
 * cycle-max from threshold-upper on, in equal parts. A worker runs slices of about DEFRAG_SLICE_US, with pauses
 * according to the percentage, so no command waits for longer than one slice. After a walk that moved almost nothing it
 * pauses: the holes are elsewhere. */
#pragma once

#include "base/info_row.h"
#include "server/core/lifecycle.h"

#include <stdint.h>

extern const struct lifecycle defrag_cycle_lifecycle;
extern const struct info_row defrag_cycle_info[];

struct worker;

enum { DEFRAG_SLICE_US = 250 };

void defrag_cycle_setup(void); /* main thread, after config_setup: adds the options */
/* A worker in its thread, hz times a second: starts its slices when it is time, otherwise costs a load. */
void defrag_cycle_turn(struct worker *worker);

/* For INFO; any thread. */
unsigned defrag_cycle_percent(void);    /* of a processor's time; 0: not running */
uint64_t defrag_cycle_current_us(void); /* since it started; 0: not running */
