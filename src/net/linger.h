/* linger.h: the last words of a connection reach a peer that is still sending.
 *
 * A socket that is closed while input is unread, or that gets input afterwards, answers with a reset; the reset
 * overtakes what was sent before, and the peer learns nothing but "connection reset". So when we end a connection our
 * side is shut down first, and what still comes is thrown away until the peer has closed too. That is nobody's
 * connection any more: it is no client, counts for no limit and is served nothing.
 *
 * Bounded, whatever peers do: LINGER_BYTES and LINGER_US each, LINGER_MOST at a time in a loop, of which the oldest
 * goes when there are more. Who is beyond these gets the reset. */
#pragma once

#include "base/list.h"
#include "net/loop.h"

enum { LINGER_BYTES = 16 << 20, LINGER_US = 2 * 1000 * 1000, LINGER_MOST = 32 };

/* Of one loop; its thread. */
struct lingers {
    struct list list; /* the oldest first */
    unsigned count;
    struct loop_timer timer; /* for the oldest */
};

void lingers_init(struct lingers *lingers);
void lingers_fini(struct loop *loop); /* closes them; the backend still works */
