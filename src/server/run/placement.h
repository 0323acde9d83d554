/* placement.h: chooses the worker for a new connection, whichever worker accepted it.
 *
 * It is the first worker with fewer than min-clients-per-thread clients, otherwise the one with the fewest. With
 * active-client-balancing off the workers take turns. A worker that is held up by a script or another long command gets
 * none while another is free, and the sender takes back connections that are on their way to it. */
#pragma once

#include "net/listener.h"
#include "server/core/lifecycle.h"

extern const struct lifecycle placement_lifecycle;

struct worker;

/* In the worker's thread. Hands the descriptor over; it is counted for maxclients already. */
void placement_give(struct worker *worker, int fd, enum listener_kind kind);
