/* Commands that cannot have what they need: each is copied, its connection is paused behind it, and its worker goes on
 * with others.
 *
 * A parked command stands with what it waits for, in order of arrival: with a stripe that somebody holds, with the gate
 * (until it opens, or as one that has asked for it), or with CLIENT PAUSE and its like. Whoever gives one of these back
 * says so to the workers concerned (worker_wake_parked) and only what stands there is tried again; of those that wait
 * for a stripe none is, once the first finds it held. A wake for mail tries nothing. After its try a command may wait
 * for something else, and goes to those who do. All in the worker's thread. */
#pragma once

#include "server/core/worker.h"
#include "server/run/dispatch_priv.h"

struct client;

void parking_init(struct parking *parking);
void parking_fini(struct parking *parking); /* nothing is parked any more */
/* Copies a job out of the input; its connection waits behind it. why: what its run came to, not RUN_DONE. */
void parking_add(struct client *client, struct job *job, const struct key *keys, enum run_result why);
/* Tries again what may go on, by the news since the last time. In each turn in which the worker was woken. */
void parking_retry(struct worker *worker);
/* Forgets the client's parked command, if there is one. */
void parking_forget(struct client *client);
/* Nobody here asks for the gate any more (parked, or a wish of the worker)? Then it must not stay closed for us. */
void parking_stop_asking(struct worker *worker);
