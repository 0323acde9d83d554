/* The replica's part of the conversation with its master, up to the answer to PSYNC. It knows no connection: bytes of
 * the master go in, requests come out. One request is sent at a time, since a master may be any version: what it does
 * not know it refuses, and that is fine for all but PING, AUTH and PSYNC.
 *
 * An active server says a little more: capa activeExpire and capa one-order, and its UUID. An active KeyDB server
 * answers the first with "+OK active-replica", and goes on with PSYNC; one of ours with "+OK active-replica one-order".
 * Then there is no PSYNC: both sides speak frames behind the reply "+ONE-ORDER" to REPLCONF one-order. KeyDB compares
 * the words behind +OK over as many bytes as the word has, so ours is no beginning of any word of its own. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "replication/history.h"

#include <stdbool.h>
#include <stdint.h>

/* What this server says of itself. Copied by handshake_begin. */
struct handshake_facts {
    struct slice user, password; /* size 0: none */
    struct slice announced_ip;   /* size 0: the master takes that of the connection */
    int port;
    const char *id;   /* NULL: asks for all data */
    int64_t offset;   /* bytes of that history that are here */
    const char *uuid; /* of this start of an active server; NULL: it is not active */
    bool is_failover; /* the master is a replica of this server that takes its place with PSYNC */
};

enum handshake_step {
    HANDSHAKE_PING,
    HANDSHAKE_AUTH,
    HANDSHAKE_PORT,
    HANDSHAKE_IP,
    HANDSHAKE_CAPA,
    HANDSHAKE_UUID,
    HANDSHAKE_VERSION,
    HANDSHAKE_ORDER, /* to a server of ours that is active as this one is; else HANDSHAKE_PSYNC */
    HANDSHAKE_PSYNC,
    HANDSHAKE_END
};

enum handshake_result {
    HANDSHAKE_MORE,      /* needs the next bytes of the master */
    HANDSHAKE_CONTINUES, /* the stream follows; `id` has the new name of the history, or is empty */
    HANDSHAKE_FULL,      /* a snapshot of `offset` bytes of the history `id` follows */
    HANDSHAKE_FRAMES,    /* frames follow, in both directions */
    HANDSHAKE_FAILED     /* `error` has the reason */
};

enum { HANDSHAKE_LINE_MOST_BYTES = 4096, HANDSHAKE_ERROR_BYTES = 320, HANDSHAKE_UUID_BYTES = 36 };

#define HANDSHAKE_ACTIVE_WORD "active-replica"
#define HANDSHAKE_ORDER_WORD "one-order"

struct handshake {
    enum handshake_step step;
    struct buffer requests[HANDSHAKE_END]; /* empty: this step is left out */
    bool asks_to_continue;
    bool peer_is_active, peer_has_order;      /* it said the words */
    char peer_uuid[HANDSHAKE_UUID_BYTES + 1]; /* of KeyDB and of ours; empty: it has not said one */
    char id[HISTORY_ID_SIZE + 1];
    int64_t offset;
    char error[HANDSHAKE_ERROR_BYTES];
};

/* Appends the first request to `out`. */
void handshake_begin(struct handshake *handshake, const struct handshake_facts *facts, struct buffer *out);
void handshake_fini(struct handshake *handshake);
/* Takes whole lines; *used is the number of bytes that were taken. Appends the requests that are due. With
 * HANDSHAKE_CONTINUES and HANDSHAKE_FULL the bytes behind *used belong to what follows. */
must_check enum handshake_result handshake_take(struct handshake *handshake, const char *data, size_t size,
                                                size_t *used, struct buffer *out);
/* 36 bytes as a UUID is written, in any case. */
bool handshake_is_uuid(struct slice text);
const char *handshake_step_name(enum handshake_step step);

/* Copies a text of the other server so that it fits into a log line: its begin, without control characters. */
void handshake_quote(struct slice text, char *quoted, size_t quoted_size);
