/* activedefrag: when memory is defragmented, and how much of a worker's time goes into it (store/defrag.h: how).
 *
 * Worker 0 looks once a second how much memory the allocator holds (active) and how much of it is in use (allocated).
 * With holes of at least active-defrag-ignore-bytes and active-defrag-threshold-lower percent every worker walks its
 * share of the stripes. Together they take active-defrag-cycle-min percent of a processor's time, up to cycle-max from
 * threshold-upper on, each as much as the others. A worker does so in slices of about DEFRAG_SLICE_US, with pauses as
 * long as the percentage says, so that no command waits for longer than one slice. After a walk that moved next to
 * nothing it rests: the holes are not ours. */
#pragma once

#include "server/core/lifecycle.h"

#include <stdint.h>

extern const struct lifecycle defrag_cycle_lifecycle;

struct worker;

enum { DEFRAG_SLICE_US = 250 };

void defrag_cycle_setup(void); /* main thread, after config_setup: adds the options */
/* A worker in its thread, hz times a second: begins with its slices if it is time. A load where it is not. */
void defrag_cycle_turn(struct worker *worker);

/* For INFO; any thread. */
unsigned defrag_cycle_percent(void);    /* of a processor's time; 0: not running */
uint64_t defrag_cycle_current_us(void); /* since it began to run; 0: not running */
