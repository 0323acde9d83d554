/* Runs the walk that makes digests of hash slots (persist/slot_walk.h) in the background: worker 0, in slices with
 * pauses, so that it takes SLOT_CYCLE_PERCENT of a processor's time. A slice takes SLOT_CYCLE_SLICE_US, so no command
 * waits for longer; up to SLOT_CYCLE_IDLE_US while neither the worker has other work nor anybody waits for the gate:
 * after a pause the first keys are read with cold caches, so many short slices take up to three times the time of a
 * few long ones. It goes on while the server follows a master, and stops while data is loaded. */
#pragma once

#include "persist/slot_walk.h"
#include "server/core/lifecycle.h"

enum { SLOT_CYCLE_SLICE_US = 500, SLOT_CYCLE_IDLE_US = 20 * 1000, SLOT_CYCLE_PERCENT = 10 };

extern const struct lifecycle slot_cycle_lifecycle;

/* With the gate owned: begins a walk in the place of one that runs. slot_walk_runs tells when it has ended. */
void slot_cycle_begin(const struct slot_terms *terms);
bool slot_cycle_runs(void);           /* any thread; worker 0 knows it exactly */
uint64_t slot_cycle_spent_us(void);   /* with the gate owned: time that the last walk has taken so far */
uint64_t slot_cycle_longest_us(void); /* its longest step */
