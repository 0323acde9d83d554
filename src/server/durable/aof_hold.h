/* Waiting for the append-only file: replies, and other parts (WAITAOF).
 *
 * Acknowledged writes survive the process. So a reply waits until the effects that it reports or reflects are safe: in
 * the journal's tail (store/journal_tail.h), which has almost all effects as soon as they are appended, or written to
 * the file.
 *
 * With `appendfsync always` a worker's output of a turn is sent when everything that was in the journal at the end of
 * the turn is on the disk. That covers the effects of its own commands and all effects that a read has seen. It applies
 * to all output, so also to messages for other clients, which their workers write later. No thread waits: the bytes
 * stay in their outputs (conn_hold), and the writer wakes the workers after a sync.
 *
 * While there is no file this costs a worker one load for each turn. */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle aof_hold_lifecycle;

struct client;
struct worker;

/* global: atomic: relaxed; changed with the gate owned, or by the writer when it begins; true: there is a file, and
 * some effects may be unwritten when a reply is ready. */
extern _Atomic bool aof_hold_on;

static inline bool aof_hold_is_on(void)
{
    return atomic_load_explicit(&aof_hold_on, memory_order_relaxed);
}

void aof_hold_update(void); /* call it when the option or the file's state has changed, or the file cannot be written */

/* --- a worker's own thread --- */

void aof_hold_turn(struct worker *worker); /* at the end of a turn, before output is sent */
/* Holds the client's output, with the reply being written, until aof_hold_unfence: rendezvous.h. */
void aof_hold_fence(struct client *client);
void aof_hold_unfence(struct client *client);
/* Holds it likewise while the writer of the file carries out an order: aof_order_pending. */
void aof_hold_until_done(struct client *client);
/* The worker is woken when everything up to `offset` of the journal is on the disk, or before that. */
void aof_hold_ask(struct worker *worker, uint64_t offset);

uint64_t aof_hold_bytes(const struct worker *worker); /* memory of its held outputs; any thread */

/* --- called by the writer --- */

void aof_hold_tell(void);          /* wakes workers whose offset is synced, or whose replies may be sent */
bool aof_hold_is_held(void);       /* true if a reply waits */
bool aof_hold_is_waited_for(void); /* true if a reply or a client waits */
