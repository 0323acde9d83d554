/* The links by which this node receives: one for each peer that it is told of (peers.h). They belong to worker 0's
 * loop.
 *
 *     rests -> connects (replication/dial) -> handshake -> frames (receiver.h)
 *       ^            \------- any fault, repl-timeout ----/
 *
 * The next attempt begins at once if the last began a second ago or more, else when a second is over; ten seconds if
 * what answers there is not to be heard: this node itself, a copy of another one, a server of another kind. A reason is
 * told in the log once, until it is another one or the link was up. */
#pragma once

#include "active/frame.h"
#include "replication/master.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

struct buffer;
struct node_orders;

extern const struct lifecycle links_lifecycle;

void links_setup(void); /* main thread, before the workers start */

/* --- any thread --- */

struct link_facts {
    uint32_t id; /* the peer's (peers.h) */
    char host[256];
    int port;
    enum master_state state; /* MASTER_SYNC: a state comes */
    uint64_t name, origin;   /* of the node that was heard there last; 0: of none yet */
    int64_t last_io_s;       /* seconds since the last byte; -1: the link is not up */
    int64_t down_s;          /* seconds since it was lost, or since it was made; -1: it is up */
    int64_t heard_ms;        /* how old what was heard last is, by its sender's clock; -1: nothing yet */
    bool is_held;            /* its input waits: for keys, a pause, data that is being loaded, memory */
    uint64_t input_bytes, state_bytes;
    uint64_t entries, old, gaps; /* placed; dropped, as they were here; something was missing before them */
    uint64_t connect_tries;
};
/* Visits all in the order of the peers; under no lock: what it sees is of one moment, and may be over. */
void links_each(void (*visit)(const struct link_facts *facts, void *context), void *context);
uint32_t links_up_count(void); /* costs a load */

/* --- worker 0 --- */

/* Another state was taken over: all links are made anew, and ask with the vector as it is then. */
void links_ask_anew(void);
/* What the node has to say by links, to those that are up. */
void links_say(const struct node_orders *orders);
/* The connection by which this member can be asked to compare (compare.h), as a number that no other one has; 0: there
 * is none. links_compare says something there, if there is one. */
uint64_t links_comparer(uint64_t name);
uint64_t links_compare(uint64_t name, enum frame_kind kind, const struct buffer *body);
