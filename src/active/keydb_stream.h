/* The stream of an active KeyDB server: RREPLAY envelopes (envelopes.h), which become entries of the servers where they
 * ran, and are placed (receiver.h).
 *
 *  1. What is here by its UUID and mvcc, and what has this node's UUID, is dropped. So is what a member of our group
 *     did, which comes by our own links: KeyDB sends effects, we need operations.
 *  2. An entry's commands are KeyDB's, and may be on several keys: place.h makes operations of them.
 *  3. A damaged envelope ends the link: nothing of it counts.
 *  4. What was read, and not placed when the link ends, is read again by the next connection.
 *
 * Worker 0's, outside of the gate. */
#pragma once

#include "active/adoption.h"
#include "active/receiver.h"

struct keydb_stream;

/* `placer` is a bare one; `origin`: for operations that have no stamp of their own. Both live longer. */
struct keydb_stream *keydb_stream_create(struct worker *worker, struct receiver *placer, struct adoption_origin *origin,
                                         unsigned db);
void keydb_stream_destroy(struct keydb_stream **handle); /* accepts NULL; leaves NULL */
/* All bytes are used. */
must_check enum receiver_result keydb_stream_take(struct keydb_stream *stream, const char *data, size_t size);
must_check enum receiver_result keydb_stream_go_on(struct keydb_stream *stream);
uint64_t keydb_stream_applied_bytes(const struct keydb_stream *stream); /* whole commands */
unsigned keydb_stream_db(const struct keydb_stream *stream);            /* selected behind them */
bool keydb_stream_wants_ack(struct keydb_stream *stream);               /* it was asked; forgets it */
const char *keydb_stream_error(const struct keydb_stream *stream);
/* All data of a KeyDB server come anew: what it had begun does not go on. */
void keydb_stream_restart(const char *uuid);
void keydb_stream_end(void); /* main thread, behind the workers */
