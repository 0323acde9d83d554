/* Runs the jobs of KEYDB.CRON when they are due.
 *
 * A job is run by the worker that looks after its key's stripe (as with expiry), hz times a second at the earliest,
 * once however many times were missed. It runs like an EVAL with the job's keys that nobody sent: with the scripts'
 * turn and the stripes of those keys and of its own, with all rights, its errors in the log. What it did and what
 * becomes of the job (a single one goes, another gets its next time) is one transaction in the journal; so whoever
 * reads the journal needs to run nothing, and goes on with the jobs where this server stood. A job that takes away or
 * replaces itself has ended.
 *
 * Jobs rest while the data is loaded, while clients are paused, and while keys do not expire (DEBUG). */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"
#include "server/core/worker.h"

#include <stdbool.h>

extern const struct lifecycle cron_runner_lifecycle;

/* Runs what is due; false: time was up before all was. The worker's thread, outside of the gate. */
bool cron_runner_turn(struct worker *worker);

/* False: EVAL was renamed to nothing, so no job may be made, and none is run. Any thread. */
bool cron_runner_is_allowed(void);
