/* The peers that this node is told to receive from: the lines `replicaof` of the configuration, REPLICAOF. A peer is an
 * address; which node answers there is for the link to learn.
 *
 * The list changes with the gate owned. It is empty on a server that is not active: there `replicaof` is the one master
 * of replication/master.h. The option has the list of the file until the server starts, then peers_lifecycle, which
 * comes before the master's, gives the last one to the master, or keeps all. */
#pragma once

#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const struct lifecycle peers_lifecycle;

enum { PEERS_MOST = 128 };

struct peer {
    uint32_t id; /* ascending, in the order in which they came; never used again */
    char host[256];
    int port;
};

void peers_setup(void); /* main thread, after config_setup: adds the option replicaof */
/* Sets a function that is called behind each change, with the gate owned, once the server has started. Before
 * the workers start. */
void peers_on_change(void (*changed)(void));

/* --- any thread --- */

/* Calls `visit` for each, in the order in which they came; under no lock: what it sees is of one moment, and may be
 * over. */
void peers_each(void (*visit)(const struct peer *peer, void *context), void *context);
uint32_t peers_count(void);      /* costs a load */
uint64_t peers_generation(void); /* the number of changes so far */

/* --- with the gate owned, on an active node --- */

enum peers_result { PEERS_DONE, PEERS_SAME, PEERS_FULL };
/* SAME: it is there already; letters of a host are compared without their case. */
enum peers_result peers_add(const char *host, int port);
bool peers_remove(const char *host, int port); /* false: it is not there */
bool peers_clear(void);                        /* false: there was none */
bool peers_has(const char *host, int port);
