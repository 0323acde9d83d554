/* Parking: commands that cannot have what they need are copied, their connection is paused behind them, and the worker
 * continues with other clients.
 *
 * A parked command waits for one thing, in order of arrival: a stripe that is held, the gate (until it opens, or to own
 * it), or the end of CLIENT PAUSE and similar states. The thread that releases it tells the workers concerned
 * (worker_wake_parked), and only the commands that wait for it are tried again. Commands that wait for a stripe are
 * tried until one finds it held. A wake for mail tries nothing. After its try a command may wait for something else.
 * All in the worker's thread. */
#pragma once

#include "base/info_row.h"
#include "server/core/lifecycle.h"
#include "server/core/worker.h"
#include "server/run/dispatch_priv.h"

extern const struct lifecycle parking_lifecycle;
extern const struct info_row parking_info[];

struct client;

/* Copies a job from the input; its connection waits behind it. The client has no parked command yet and is not blocked.
 * `why` is the result of its run, not RUN_DONE. */
void parking_add(struct client *client, struct job *job, const struct key *keys, enum run_result why);
