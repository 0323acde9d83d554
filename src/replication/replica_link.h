/* The link to one replica: a client that has asked for the stream of changes (CLIENT_REPLICA). Its worker reads the
 * journal for it and writes into its connection; nobody else does.
 *
 *      REPLCONF ...          facts about the replica; it is a client like others
 *      PSYNC, SYNC    -->  WAITS ----> LOADS -------> ONLINE
 *                            |    full_sync.h: the snapshot ^
 *                            +---- partial sync ------------+
 *
 *  1. At most 256 KiB are copied ahead of the socket. Larger bulk strings are referenced.
 *  2. A link that has read everything sets its worker's bit in a mask, and looks once more. A worker that has journaled
 *     takes the mask at the end of its turn and wakes those workers. Its own links it serves itself, before their
 *     output is sent.
 *  3. A link reads only inside of the gate. So nobody who owns the gate sees a link at work, and links that were told
 *     to end (replicas_disconnect) read nothing of what comes then.
 *  4. Each link that gets the stream has a place: a reader at the offset that the replica has acknowledged. It stays
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
    REPLICA_CAPA_NEWEST = 1 << 3  /* reads every version of RDB: this server */
};
enum replica_filter { REPLICA_WITHOUT_KEYS = 1 << 0, REPLICA_WITHOUT_LIBRARIES = 1 << 1 };

enum { REPLICA_IP_MOST = 255 };
/* At most REPLICA_IP_MOST bytes; empty: that of its connection. */
void replica_set_ip(struct client *client, struct slice ip);
void replica_set_port(struct client *client, int port);
void replica_add_capa(struct client *client, unsigned capa); /* enum replica_capa */
void replica_set_keydb(struct client *client);               /* it has a uuid */
void replica_set_snapshot_only(struct client *client, bool is_set);
void replica_set_filter(struct client *client, unsigned filter); /* enum replica_filter: the snapshot has only a part */
bool replica_is_filtered_without_eof(const struct client *client);

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
