/* Full syncs: one snapshot at a time for all replicas that wait at its begin.
 *
 *     a wish -> [delay for others] -> the gate: reader opened, child forked -> the child writes a file or into a pipe
 *            -> worker 0 reads pieces -> each link takes them at its own pace -> the stream
 *
 * Pieces stand in a ring of 1 MiB. Worker 0 reads no further before the slowest link has taken the oldest piece; a link
 * that takes nothing for repl-timeout is closed by its worker. A reader of the journal stands at the snapshot's offset
 * until the last link has left the sync.
 *
 * The sync belongs to worker 0. The ring, and what links must know, is guarded by a lock (rank LOCK_REGISTRY). */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

struct replica;

extern const struct lifecycle full_sync_lifecycle;

void full_sync_setup(void); /* main thread, before the workers start */
/* Any thread: replicas wait, or have gone: worker 0 looks soon. */
void full_sync_wish(void);
/* The link's worker, inside of the gate, for a link that worker 0 has put into the sync. True: wants to be woken. */
bool full_sync_serve(struct replica *link);
bool full_sync_runs(void);           /* any thread: a snapshot for replicas is made or sent */
uint64_t full_sync_held_bytes(void); /* any thread: memory of the ring */
