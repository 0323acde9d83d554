/* linger.h: closing a connection such that a peer which still sends receives the last reply.
 *
 * If a socket is closed with unread input, or input arrives afterwards, the kernel sends a reset. The reset overtakes
 * the last output, and the peer sees only "connection reset". So the server shuts its sending side down first, and then
 * discards input until the peer has closed, too. A lingering socket is not a client any more: it counts for no limit
 * and gets no service.
 *
 * There are limits: LINGER_BYTES and LINGER_US for each socket, and LINGER_MOST sockets of a loop; when there are more,
 * the oldest is closed. A peer beyond a limit gets the reset. */
#pragma once

#include "base/list.h"
#include "net/loop.h"

enum { LINGER_BYTES = 16 << 20, LINGER_US = 2 * 1000 * 1000, LINGER_MOST = 32 };

/* The lingering sockets of one loop. Only the loop's thread uses them. */
struct lingers {
    struct list list; /* the oldest first */
    unsigned count;
    struct loop_timer timer; /* for the limit of the oldest */
};

void lingers_init(struct lingers *lingers);
void lingers_fini(struct loop *loop); /* closes all of them; the backend must still work */
