/* The replicas of this server, as one list: for INFO, ROLE, WAIT, limits and shutdown. replica_link.h has the links
 * themselves.
 *
 * The list has its lock (rank LOCK_REGISTRY). Offsets in it are those of the history (history.h). */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle replicas_lifecycle;

void replicas_setup(void); /* main thread, before the workers start */

enum replica_state {
    REPLICA_WAITS,  /* for a snapshot; "wait_bgsave" */
    REPLICA_LOADS,  /* the snapshot is being sent; "send_bulk" */
    REPLICA_ONLINE, /* it gets the stream; "online" */
};

struct replica_facts {
    uint64_t client_id;
    const char *ip; /* as it said with REPLCONF ip-address, or as its connection says; valid during `visit` */
    int port;       /* of its listener, as it said; 0: it said nothing */
    enum replica_state state;
    bool is_keydb;         /* KeyDB, or this server */
    int64_t acked_offset;  /* it has applied so much; 0: not known yet */
    int64_t synced_offset; /* so much is on its disk; -1: it says nothing about that */
    int64_t lag_s;         /* seconds since its last sign of life, as INFO shows it */
    uint64_t held_bytes;   /* memory that is held for it alone */
};

/* --- any thread --- */

/* Calls `visit` for each connected replica, in the order in which they came. `visit` takes no lock. */
void replicas_each(void (*visit)(const struct replica_facts *facts, void *context), void *context);
/* Likewise for replicas that have gone, and for which the stream is kept. */
struct replica_place_facts {
    const char *ip;
    int port;
    int64_t offset;      /* they can continue from here on */
    uint64_t kept_bytes; /* of the stream behind it */
    int64_t gone_s;
};
void replicas_each_place(void (*visit)(const struct replica_place_facts *facts, void *context), void *context);
unsigned replicas_count(void); /* connected replicas in any state; costs a load */
/* Online replicas that were heard of in the last min-replicas-max-lag seconds; at most a second old; costs a load. */
unsigned replicas_good_count(void);
/* Online replicas that have applied everything up to this offset, or have it on their disk. */
enum replicas_proof { REPLICAS_APPLIED, REPLICAS_SYNCED };
unsigned replicas_have(int64_t offset, enum replicas_proof proof);
/* Replicas are asked for their offsets (GETACK) at the end of this turn; once, however often this is called. The
 * worker's thread. */
struct worker;
void replicas_ask_offsets(struct worker *worker);
/* Sets a function that is called after a replica's offsets have grown, or a replica has come or gone: in the thread of
 * the link's worker, with no lock held. Before the workers start. */
void replicas_on_news(void (*news)(void));

void replicas_note_refused(void); /* a partial sync was refused: for PSYNC */

struct replicas_stats {
    uint64_t full_syncs, partial_syncs, refused_partial_syncs; /* granted; refused: a full sync followed */
    uint64_t output_bytes;                                     /* sent to replicas */
    uint64_t held_bytes;                                       /* memory that is held for replicas alone */
};
void replicas_stats(struct replicas_stats *stats);
void replicas_reset_stats(void); /* CONFIG RESETSTAT; in an exclusive section */

/* --- with the gate owned --- */

/* Closes all links, since ids or offsets change: replicas come back at once, and continue if they can. The places that
 * are kept for replicas that left go, too, if `forget`. */
void replicas_disconnect(bool forget);
