/* Waiting for the append only file: replies, and clients that ask with WAITAOF.
 *
 * What was acknowledged survives the process, so a reply waits until what it tells of, or could, is where it does: in
 * the journal's tail (store/journal_tail.h), where almost all is from the moment it is appended, or written to the
 * file.
 *
 * With `always` what a worker has written to its connections in a turn is sent when everything that was in the journal
 * at the turn's end is on the disk: the effects of what was run, and of whatever a read has seen. That holds for all
 * output, so also for messages to other clients, which are written by their own workers later. Nobody waits: the bytes
 * stay in their outputs (conn_hold), and the writer wakes the workers when it has synced.
 *
 * While there is no file it costs a worker one load a turn. */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle aof_hold_lifecycle;

struct client;
struct worker;

extern _Atomic bool aof_hold_on; /* global, atomic: relaxed; changed at the gate, or by the writer when it has begun:
                                  * there is a file, and whether all was written can matter to who reads a reply */

static inline bool aof_hold_is_on(void)
{
    return atomic_load_explicit(&aof_hold_on, memory_order_relaxed);
}

void aof_hold_update(void); /* the option, or the file's state, has changed, or it cannot be written */

/* --- a worker's own thread --- */

void aof_hold_turn(struct worker *worker); /* at a turn's end, before what was written is sent */
/* The client's output, with the reply that is being written, is held until aof_hold_unfence: rendezvous.h. */
void aof_hold_fence(struct client *client);
void aof_hold_unfence(struct client *client);
/* Likewise, while an order to the file's writer is carried out: aof_order_pending. */
void aof_hold_until_done(struct client *client);
/* The client waits until everything up to `offset` of the journal is on the disk, or for ever, in both cases at most
 * timeout_ms (0: no limit). Then `reply` is told whether it is on the disk. */
enum aof_wait { AOF_WAIT_SYNCED, AOF_WAIT_FOR_EVER };
void aof_hold_client(struct client *client, uint64_t offset, enum aof_wait how, int64_t timeout_ms,
                     void (*reply)(struct client *client, bool is_synced));

uint64_t aof_hold_bytes(const struct worker *worker); /* memory of its held outputs; any thread */

/* --- the writer --- */

void aof_hold_tell(void);          /* wakes whose offset is synced, or whose reply may be sent */
bool aof_hold_is_held(void);       /* does a reply wait? */
bool aof_hold_is_waited_for(void); /* does anybody wait? */
