/* The master that this server follows: its address, and the state of the link to it. master_link.h has the link.
 *
 * The address and the role change with the gate owned and under a lock (rank LOCK_REGISTRY). The link belongs to worker
 * 0's loop. Each change of the master has a number, the generation: what the link does with the data it does inside the
 * gate, and only if the generation is still its own. */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle master_lifecycle;

void master_setup(void); /* main thread, after config_setup */
/* Main thread, before master_lifecycle starts: the master of the configuration. */
void master_choose(const char *host, int port);

enum master_state {
    MASTER_CONNECT,    /* no connection; "connect" */
    MASTER_CONNECTING, /* "connecting" */
    MASTER_HANDSHAKE,  /* "handshake", in ROLE "connecting" */
    MASTER_SYNC,       /* the snapshot is received or loaded; "sync" */
    MASTER_CONNECTED   /* the stream is applied; "connected" */
};

/* --- any thread --- */

struct master_facts {
    bool follows; /* false: this server is a master, and nothing below holds */
    char host[256];
    int port;
    enum master_state state;
    bool sync_in_progress;
    int64_t sync_total_bytes, sync_read_bytes; /* total: -1 if it is not known */
    int64_t sync_read_s;                       /* seconds since the last byte of the snapshot */
    int64_t last_io_s;                         /* seconds since the last byte; -1: there is no link */
    int64_t down_s;                            /* seconds since the link was lost; -1: it is up */
    int64_t up_s;                              /* seconds since it is up; -1: it is not */
    int64_t away_s;                            /* seconds since the start without a link that there had been */
    uint64_t current_tries, master_tries;      /* to link: since it was lost; to this master */
    int64_t read_offset, applied_offset;       /* of the history */
};
void master_facts(struct master_facts *facts);
/* True while this server follows a master and the link to it is not up. Costs a load. */
bool master_is_away(void);

struct master_stats {
    uint64_t input_bytes;  /* received from masters */
    uint64_t apply_errors; /* commands of the stream that failed */
    uint64_t connect_tries;
};
void master_stats(struct master_stats *stats);
void master_reset_stats(void); /* CONFIG RESETSTAT; in an exclusive section */

/* The number of changes of the master so far: while a thread stays within the gate, there is none. */
uint64_t master_generation(void);
struct master_address {
    char host[256]; /* "": this server is a master */
    int port;
};
uint64_t master_address(struct master_address *address); /* returns the generation to which it belongs */

/* --- with the gate owned --- */

/* REPLICAOF host port: follows this master from now on; the link begins soon. Keeps the data until the first sync, and
 * the history, in which the new master may continue. Following the same master again changes nothing; false then. */
bool master_follow(const char *host, int port);
/* REPLICAOF NO ONE: this server is a master from now on, under a new id (history_fork). False: it was one already. */
bool master_leave(void);
