/* Deleting keys whose time is over though nobody asks for them. Each worker looks after a share of the stripes, hz
 * times a second, and knows exactly what is due. Where much is due at once it works in slices of a millisecond and
 * leaves its clients the rest of the time, by active-expire-effort, until all is done. */
#pragma once

#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle active_expiry_lifecycle;

struct worker;

void active_expiry_setup(void); /* main thread, after config_setup: adds the option */

bool active_expiry_may_run(const struct worker *worker); /* not while all is to stay as it is; any thread */

/* For how long clients are served after so much time was spent on expiry: a quarter of all time goes to it by effort 1,
 * 43 % by effort 10. Any thread. */
uint64_t active_expiry_rest_us(uint64_t spent_us, int64_t effort);
