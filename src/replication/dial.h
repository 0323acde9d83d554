/* Making the connection to another server that this one wants to hear: its name is looked up, its addresses are tried
 * one after the other, with TLS if tls-replication says so, and from bind-source-addr.
 *
 *     dial_begin -> dial_next -> DIAL_WAITS: again after on_done
 *                             -> DIAL_CONNECTS: on_open of the connection, or on_closed: dial_has_more? dial_next
 *                             -> DIAL_FAILED: no address is left; `error` has the reason of the last one
 *
 * Zeroed memory is a dial that has ended. One owner, a loop's thread. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "replication/handshake.h"

#include <stdbool.h>

struct addrinfo;
struct conn;
struct conn_handler;
struct lookup;
struct loop;

enum { DIAL_ERROR_BYTES = 300 };

enum dial_result { DIAL_WAITS, DIAL_CONNECTS, DIAL_FAILED };

struct dial {
    struct lookup *lookup;       /* NULL: it has ended */
    const struct addrinfo *next; /* to be tried next; NULL: none, or the name is not looked up yet */
    bool is_known;               /* the name is looked up */
};

/* A job of the background thread calls `on_done`; an address in digits needs none. */
void dial_begin(struct dial *dial, const char *host, int port, void (*on_done)(void));
/* The connection is the caller's, and may be uninitialized; it is open with DIAL_CONNECTS only. */
must_check enum dial_result dial_next(struct dial *dial, struct loop *loop, struct conn *conn,
                                      const struct conn_handler *handler, char error[DIAL_ERROR_BYTES]);
static inline bool dial_has_more(const struct dial *dial)
{
    return dial->next != NULL;
}
void dial_end(struct dial *dial);

/* Begins the handshake on what has been connected: what the options say of this server is added to the facts. */
void dial_begin_handshake(struct handshake *handshake, struct handshake_facts facts, struct buffer *out);
