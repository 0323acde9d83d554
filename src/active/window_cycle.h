/* Keeps the window (store/window.h) small: what F has passed is forgotten, in slices; when it is half full, additions
 * are joined; what exceeds active-window-size
 * or active-tombstones-limit is given up, oldest first, counted and logged; dirty keys are written anew when this node
 * may. Writers also forget a little of their stripe themselves. Worker 0's, ten times a second. */
#pragma once

#include "server/core/lifecycle.h"

#include <stdint.h>

extern const struct lifecycle window_cycle_lifecycle;

enum { WINDOW_CYCLE_SLICE_US = 4000, WINDOW_CYCLE_REPAIRS = 256 /* keys of a stripe in one slice, at most */ };

/* While data are loaded, whose last stamp this is: what exceeds the limits is given up. With the gate owned. */
void window_cycle_bound(struct worker *worker, uint64_t newest);
uint64_t window_cycle_repaired(void); /* keys written anew, since the start; any thread */
