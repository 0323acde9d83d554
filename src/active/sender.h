/* The sending side of a link between two active nodes: a client that has said REPLCONF one-order. Its worker reads the
 * journal for it, and writes frames into its connection; nobody else does.
 *
 *     REPLCONF one-order UUID     +ONE-ORDER; both sides speak frames from here on (frame.h)
 *     hello                  <--  who the receiver is, what it has, what it wants by this link
 *     hello                  -->
 *     makes ...              -->  if the receiver lacks what is not in the history any more: at once when a file is
 *                                 being made, then once a second
 *     state ..., state ""    -->  that file (snapshot.h)
 *     entries, beats         -->
 *     want, stop             <--  at any time
 *     stopped                -->
 *
 *  1. The receiver gets the entries of each origin that it wants by this link above the stamp that it has, in the
 *     origin's order, each once.
 *  2. A beat comes behind all entries of these origins that stand before it in the journal, and speaks of these origins
 *     alone. So what the receiver hears is true of what it has.
 *  3. One reader of the journal serves all origins of a link. When one is wanted that stands farther back, the reader
 *     goes back, and what the receiver has is passed over.
 *  4. At most 256 KiB are copied ahead of the socket (followers.h). Large words are referenced.
 *  5. What the receiver says is checked; what is wrong closes the connection, with a line that says what. */
#pragma once

#include "active/uuid.h"
#include "base/compiler.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

struct client;

extern const struct lifecycle sender_lifecycle;

/* The client's input is frames from here on, its output is the link's; "+ONE-ORDER" was written. `uuid`: of the start
 * of the other node. The thread of the client's worker, while active replication is on. */
void sender_begin(struct client *client, struct slice uuid);

/* With the gate owned: what this node has did not come by its journal alone. All links end, and come again. */
void senders_end_all(void);

/* --- facts: any thread --- */

enum sender_state {
    SENDER_GREETS,  /* it waits for the hello */
    SENDER_GIVES,   /* the state of this node */
    SENDER_STREAMS, /* entries and beats */
};
const char *sender_state_name(enum sender_state state);

struct sender_facts {
    uint64_t client_id;
    uint64_t peer; /* its name; 0: it has not said it yet */
    char address[64];
    enum sender_state state;
    unsigned origins;   /* go by this link */
    uint64_t entries;   /* sent since it began */
    uint64_t bytes;     /* of frames */
    uint64_t lag_bytes; /* of the journal that it was not given yet */
    uint64_t moved_ms;  /* since the socket took bytes last */
};
/* Calls `visit` for each link, in the order in which they came. `visit` takes no lock. */
void senders_each(void (*visit)(const struct sender_facts *facts, void *context), void *context);
