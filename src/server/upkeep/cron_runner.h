/* Runs the jobs of KEYDB.CRON when they are due.
 *
 * The worker that handles the job's stripe (as for expiry) runs the job, at most hz times a second, and once even if
 * several times were missed. The job runs like an EVAL with its keys, but without a sender: with the scripts' turn, the
 * stripes of its keys and its own stripe, and all permissions; errors are logged. The effects of the script and the
 * change of the job (a single job is deleted, a repeating one gets its next start) are one transaction in the journal.
 * So readers of the journal run nothing, and can continue with the jobs where this server stopped. A job that deletes
 * or replaces itself has ended.
 *
 * Jobs do not run while data is loading, while clients are paused, and while keys do not expire (DEBUG). */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"
#include "server/core/worker.h"

#include <stdbool.h>

extern const struct lifecycle cron_runner_lifecycle;

/* Runs the jobs that are due. False: its time slice ended before all were run. The worker's thread, outside of the
 * gate. */
bool cron_runner_turn(struct worker *worker);

/* False: rename-command has removed EVAL, so jobs can neither be created nor run. Any thread. */
bool cron_runner_is_allowed(void);
