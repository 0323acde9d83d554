/* Commands that cannot have what they need: each is copied, its connection is paused behind it, and its worker goes on
 * with others.
 *
 * A parked command stands with what it waits for, in order of arrival: with a stripe that somebody holds, with the gate
 * (until it opens, or as one that has asked for it), or with CLIENT PAUSE and its like. Whoever gives one of these back
 * says so to the workers concerned (worker_wake_parked) and only what stands there is tried again; of those that wait
 * for a stripe none is, once the first finds it held. A wake for mail tries nothing. After its try a command may wait
 * for something else, and goes to those who do. All in the worker's thread. */
#pragma once

#include "server/core/lifecycle.h"
#include "server/core/worker.h"
#include "server/run/dispatch_priv.h"

extern const struct lifecycle parking_lifecycle;

struct client;

/* Copies a job out of the input; its connection waits behind it. The client has none parked yet, and is not blocked.
 * why: what its run came to, not RUN_DONE. */
void parking_add(struct client *client, struct job *job, const struct key *keys, enum run_result why);
