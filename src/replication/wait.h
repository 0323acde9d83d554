/* Clients that wait until replicas have their writes: WAIT, and WAITAOF with replicas; or members of an active group:
 * KEYDB.ACTIVE WAIT.
 *
 * A worker has a list of its clients that wait. It looks at them when a replica has said something new, and asks the
 * replicas for their offsets, once a turn. */
#pragma once

#include "base/compiler.h"
#include "replication/replicas.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle wait_lifecycle;

struct client;
struct worker;

/* How it stands now. */
struct wait_state {
    unsigned replica_count; /* that have it */
    unsigned lacking_count; /* members that do not; of replicas it is not known who there should be */
    bool is_in_file;
};

struct wait_wish {
    uint64_t offset; /* in the journal: behind what is waited for */
    int64_t replica_count;
    enum replicas_proof proof; /* of the replicas */
    bool wants_file;           /* it also has to be on this server's disk */
    int64_t timeout_ms;        /* 0: no limit */
    /* Of members instead of replicas, until none lacks what `stamp` stands for: any thread. NULL: of replicas. */
    struct wait_state (*look)(uint64_t stamp);
    uint64_t stamp;
    /* Writes the reply when it has come true, or after the timeout. */
    void (*reply)(struct client *client, const struct wait_state *state);
};

struct wait_state wait_look(uint64_t offset, enum replicas_proof proof); /* any thread */

/* Blocks the client; its worker's thread, from a command of its own that is not part of EXEC or a script. */
void wait_begin(struct client *client, const struct wait_wish *wish);
void wait_look_again(void); /* a replica has said something new, or the role has changed; any thread */
