/* A new connection: may it come in (places, protected mode, the server's end), and to which worker does it go? */
#pragma once

#include "net/listener.h"
#include "server/core/lifecycle.h"

extern const struct lifecycle accept_lifecycle;

/* A listener's on_accept, in the thread of the worker that is `user`. */
void accept_connection(struct loop *loop, int fd, const struct sockaddr_storage *peer, socklen_t peer_size,
                       enum listener_kind kind, void *user);
