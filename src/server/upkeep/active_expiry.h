/* The active expire cycle: deletes expired keys that are not accessed. Each worker handles a share of the stripes, hz
 * times a second, and knows exactly which keys are due. If many are due at once, it works in slices of a millisecond
 * and serves clients in between, depending on active-expire-effort, until all are deleted. */
#pragma once

#include "base/info_row.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle active_expiry_lifecycle;
extern const struct info_row active_expiry_info[];

struct worker;

void active_expiry_setup(void); /* main thread, after config_setup: adds the option */

bool active_expiry_may_run(const struct worker *worker); /* false while data must not change; any thread */

/* Returns how long to serve clients after this much time was spent on expiry: effort 1 gives a quarter of all time to
 * expiry, effort 10 gives 43 %. Any thread. */
uint64_t active_expiry_rest_us(uint64_t spent_us, int64_t effort);
