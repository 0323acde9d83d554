/* The link to one replica: a client that has asked for the stream of changes (CLIENT_REPLICA). Its worker reads the
 * journal for it and writes into its connection; nobody else does.
 *
 *      REPLCONF ...          facts about the replica; it is a client like others
 *      PSYNC, SYNC    -->  WAITS ----> LOADS -------> ONLINE
 *                            |    full_sync.h: the snapshot ^
 *                            +---- partial sync ------------+
 *
 *  1. At most 256 KiB are copied ahead of the socket. Larger bulk strings are referenced.
 *  2. followers.h wakes and serves it. Links that were told to end (replicas_disconnect) read nothing of what comes
 *     then.
 *  3. Each link that gets the stream has a place: a reader at the offset that the replica has acknowledged. It stays
 *     for repl-backlog-ttl when the connection has ended (replicas.c).
 *
 * All functions: the thread of the client's worker. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

struct client;

extern const struct lifecycle replica_link_lifecycle;

/* --- what a replica says of itself, before it asks for the stream --- */

enum replica_capa {
    REPLICA_CAPA_EOF = 1 << 0,    /* a snapshot whose size is not known in advance */
    REPLICA_CAPA_PSYNC2 = 1 << 1, /* learns of a new id when it continues */
    REPLICA_CAPA_KEYDB = 1 << 2,  /* activeExpire */
    REPLICA_CAPA_NEWEST = 1 << 3, /* reads every version of RDB: this server */
    REPLICA_CAPA_VALKEY = 1 << 4  /* reads RDB_VERSION_VALKEY, and none of Redis' from 12 on */
};
enum replica_filter { REPLICA_WITHOUT_KEYS = 1 << 0, REPLICA_WITHOUT_LIBRARIES = 1 << 1 };

enum { REPLICA_IP_MOST = 255 };
/* At most REPLICA_IP_MOST bytes; empty: that of its connection. */
void replica_set_ip(struct client *client, struct slice ip);
void replica_set_port(struct client *client, int port);
void replica_add_capa(struct client *client, unsigned capa); /* enum replica_capa */
void replica_set_keydb(struct client *client,
                       struct slice uuid); /* it has a uuid; empty: it is KeyDB, says another word */
/* The word that a server of Valkey says. */
void replica_set_version(struct client *client, struct slice version);
void replica_set_snapshot_only(struct client *client, bool is_set);
void replica_set_filter(struct client *client, unsigned filter); /* enum replica_filter: the snapshot has only a part */
bool replica_is_filtered_without_eof(const struct client *client);

/* --- the stream of KeyDB servers that follow an active one --- */

struct journal_view;
struct output;
struct replica_wrap; /* of one server; it may come back and continue */

/* Filled in by src/active. The thread of the link's worker. */
struct replica_wrapping {
    struct replica_wrap *(*open)(struct slice uuid); /* NULL: it gets the plain stream */
    void (*leave)(struct replica_wrap **wrap);       /* accepts NULL; leaves NULL */
    /* Its data are those of this offset of the journal, and its stream begins with the offset of the history there. */
    void (*begin)(struct replica_wrap *wrap, uint64_t journal_offset);
    /* It has so much of its stream. False: it cannot continue. */
    bool (*resume)(struct replica_wrap *wrap, int64_t offset, uint64_t *journal_offset);
    /* What it has acknowledged, as an offset of the history; -1: so much was not sent. */
    int64_t (*applied)(struct replica_wrap *wrap, int64_t offset);
    /* Appends what this record gives; the journal goes on at this offset. Returns the number of bytes. */
    size_t (*write)(struct replica_wrap *wrap, const struct journal_view *view, uint64_t journal_offset,
                    struct output *output);
};
void replica_link_set_wrapping(const struct replica_wrapping *how); /* main thread, before the workers start */

/* --- the stream --- */

/* The log names who asks for the stream. */
void replica_log_wish(struct client *client, const char *what_is_wrong);
/* Inside of the gate. Continues behind `offset` bytes of the history `id`; the reply is written. False: a full sync is
 * needed; the log says why. */
must_check bool replica_continue(struct client *client, struct slice id, int64_t offset);
/* Inside of the gate. A full sync, as soon as possible. `is_old`: it has sent SYNC, and acknowledges nothing. */
void replica_begin_full(struct client *client, bool is_old);
/* REPLCONF ACK, FACK; synced_offset -1: it says nothing of it. Ignored if the client is no replica. */
void replica_ack(struct client *client, int64_t offset, int64_t synced_offset);
