/* One RREPLAY envelope of an active KeyDB server as bytes:
 *
 *     RREPLAY uuid payload [db [mvcc]]        an array of bulk strings; what is behind mvcc is ignored
 *     payload = one or more commands as arrays of bulk strings, also SELECT and further envelopes
 *
 * envelopes.h decides what an envelope means. Here nothing is copied: what was read points into the bytes. */
#pragma once

#include "active/uuid.h"
#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { ENVELOPE_DEPTH_MOST = 64, ENVELOPE_ERROR_BYTES = 160 };

struct envelope {
    struct uuid uuid;
    struct slice payload;
    uint64_t mvcc; /* 0: none, so nobody can tell whether it is here already */
    unsigned db;
    bool has_db;
};

bool envelope_is(const struct slice *words, uint32_t word_count); /* the command is RREPLAY */
/* False: `error` says which of the words is wrong. `db_count`: databases of this server. */
must_check bool envelope_read(const struct slice *words, uint32_t word_count, unsigned db_count,
                              struct envelope *envelope, char error[ENVELOPE_ERROR_BYTES]);

/* Appends an envelope with all five words. */
void envelope_write(struct buffer *out, const struct envelope *envelope);
/* The same in parts, for a payload that is sent by reference: what is before its bytes, and what is behind them. */
void envelope_write_head(struct buffer *out, const struct uuid *uuid, size_t payload_bytes);
void envelope_write_tail(struct buffer *out, unsigned db, uint64_t mvcc);
/* Appends a command to a payload. */
void envelope_add_command(struct buffer *payload, const struct slice *words, uint32_t word_count);
