/* The link to the master: connecting, handshake, full sync, stream. It belongs to worker 0's loop.
 *
 *     rests -> looks up -> connects -> handshake -> full sync -> stream
 *       ^                                  \-- continues ----------^
 *       any fault, repl-timeout, another master ------------------- back to the start
 *
 * A fault is one line in the log. The next attempt begins at once if the last began a second ago or more, else when a
 * second is over; ten seconds if this server cannot read what the master sends. */
#pragma once

#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

struct master_facts;
struct master_stats;

extern const struct lifecycle master_link_lifecycle;

void master_link_setup(void); /* main thread, before the workers start */

/* --- any thread; for master.c --- */

void master_link_facts(struct master_facts *facts); /* fills in the state of the link */
bool master_link_is_up(void);                       /* costs a load */
void master_link_look(void);                        /* the master has changed */
/* Ends the link, which is made again; for CLIENT KILL. False: it is not up. */
bool master_link_cut(void);
void master_link_stats(struct master_stats *stats);
void master_link_reset_stats(void);
