/* New connections: decides whether a connection is accepted (maxclients, protected mode, shutdown), and which worker
 * gets it. */
#pragma once

#include "net/listener.h"
#include "server/core/lifecycle.h"

extern const struct lifecycle accept_lifecycle;

/* The on_accept function of listeners, in the thread of the worker that is `user`. */
void accept_connection(struct loop *loop, int fd, const struct sockaddr_storage *peer, socklen_t peer_size,
                       enum listener_kind kind, void *user);
