/* placement.h: which worker gets a new connection, whoever accepted it.
 *
 * The first with fewer than min-clients-per-thread clients, else the one with the fewest; with
 * active-client-balancing off one after the other. But a worker that is held up, in the middle of a script or another
 * long command, gets none while another is free, and what is on its way to one is taken back by who sent it. */
#pragma once

#include "net/listener.h"
#include "server/core/lifecycle.h"

extern const struct lifecycle placement_lifecycle;

struct worker;

/* In the worker's thread. The descriptor is handed over; its place among maxclients is taken already. */
void placement_give(struct worker *worker, int fd, enum listener_kind kind);
