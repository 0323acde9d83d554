/* Internals of replicas.c, replica_link.c and full_sync.c. */
#pragma once

#include "base/list.h"
#include "base/spinlock.h"
#include "net/loop.h"
#include "replication/backpressure.h"
#include "replication/followers.h"
#include "replication/handshake.h"
#include "replication/places.h"
#include "replication/replica_link.h"
#include "replication/replicas.h"
#include "store/journal.h"

#include <stdatomic.h>

struct worker;

/* A position in the journal for a replica, and by whom it can be taken up again. The link's worker owns it; when the
 * link has ended it is in the list of places, guarded by the list's lock. */
struct replica_place {
    struct place place; /* its offsets: since it was left */
    struct journal_reader reader;
    uint64_t left_us;
};

/* Fields without a comment are its worker's. */
struct replica {
    struct list_node node;               /* guarded by the list's lock; linked: it has asked for the stream */
    struct follower follower;            /* has begun: it is served */
    struct client *client;               /* const */
    struct worker *worker;               /* const */
    uint64_t client_id;                  /* const */
    char *said_ip;                       /* its worker changes it under the list's lock; NULL: nothing */
    char peer_ip[64];                    /* const once it is linked */
    int port;                            /* changed under the list's lock */
    bool is_keydb;                       /* likewise */
    char uuid[HANDSHAKE_UUID_BYTES + 1]; /* const once it is linked; empty: it has not said one */
    unsigned capa, filter;               /* const once it is linked */
    bool snapshot_only, is_old;          /* likewise */
    uint64_t generation;                 /* const once it is linked: that of the list when it was */

    _Atomic int state;               /* atomic: relaxed; enum replica_state; its worker changes it */
    _Atomic int64_t acked, synced;   /* atomic: relaxed; of the history; -1: not known */
    _Atomic uint64_t heard_us;       /* atomic: relaxed; the last acknowledgement or sign of life */
    _Atomic uint64_t waits_since_us; /* atomic: relaxed; when it asked for a snapshot */
    _Atomic uint64_t held_bytes;     /* atomic: relaxed; memory for it alone; its worker changes it */

    /* The stream: */
    bool has_reader; /* follower.streams: it gets records now */
    bool is_idle;    /* it has read everything */
    struct journal_reader reader;
    struct replica_wrap *wrap;   /* NULL: it gets the records as they are */
    struct journal_view view;    /* the record being written */
    size_t view_done;            /* so many of its bytes; all of them: the next record */
    uint32_t view_blob;          /* so many of its blobs */
    struct replica_place *place; /* NULL: none */
    uint64_t asked_offset;       /* of the journal: where it was asked for its offset last */
    struct pacing pacing;
    struct loop_timer pace_timer;
    int64_t lag_limit_bytes; /* of its place; 0: writers do not wait for it */
    struct backpressure backpressure;
    uint64_t last_in, last_out; /* bytes of the connection when they were looked at last */
    uint64_t moved_us;          /* when it took bytes last */

    /* The snapshot (full_sync.c): */
    _Atomic uint64_t sync_number; /* atomic: set by worker 0 under the list's lock, reset by its worker; 0: none */
    _Atomic uint64_t sync_next;   /* atomic: release by its worker: the piece that it takes next */
    bool has_joined;              /* its worker knows of the sync */
    bool has_begun;               /* the first bytes of the transfer were written */
};

/* --- replicas.c --- */

extern struct spinlock replicas_lock;                 /* global: rank LOCK_REGISTRY: the list and the places */
extern struct list replicas_list;                     /* global: guarded by replicas_lock; of struct replica */
void replicas_add(struct replica *link);              /* its worker; it is linked from here on */
void replicas_remove(struct replica *link);           /* likewise; does nothing if it is not linked */
bool replicas_is_current(const struct replica *link); /* false: it has to end, as the history has changed */
/* The place stays for the replica; the oldest ends if there are too many. Leaves NULL; accepts NULL. */
void replicas_leave_place(struct replica_place **place);
/* The place that this replica has left, which goes on at `offset` of the journal: places.h. NULL: none. */
struct replica_place *replicas_take_place(const struct replica *link, uint64_t offset);
void replicas_close_place(struct replica_place **place);
void replicas_tell_news(void);
enum replicas_event { REPLICAS_FULL_SYNC, REPLICAS_PARTIAL_SYNC, REPLICAS_REFUSED_SYNC };
void replicas_count_sync(enum replicas_event event);
void replicas_count_output(uint64_t bytes);
void replicas_note_held(struct replica *link, uint64_t bytes); /* its worker */
void replicas_refresh_good(void);                              /* worker 0's, once a second and when states change */

/* --- replica_link.c --- */

bool replica_is_plain_keydb(
    const struct replica *link);                    /* a server of KeyDB's own; under the list's lock, or its worker */
bool replica_is_valkey(const struct replica *link); /* likewise; it reads RDB_VERSION_VALKEY */
void replica_close(struct replica *link, const char *why); /* ends the connection */
/* The snapshot is sent. */
void replica_snapshot_sent(struct replica *link, bool starts_at_once);
/* Opens reader and place at this offset of the journal, which is retained. False: it is not. */
must_check bool replica_open_reader(struct replica *link, uint64_t offset);
must_check bool replica_begin_reader(struct replica *link, uint64_t offset);   /* likewise; its data are of there */
const char *replica_name(const struct replica *link, char *room, size_t size); /* "127.0.0.1:6380", for the log */
