/* Keeping the journal for replicas: it is on from the first replica (or the first sync of this server with a master)
 * until no replica was connected for repl-backlog-ttl seconds. On a replica it stays. */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle backlog_lifecycle;

/* With the gate owned: the journal is kept from here on. If it was off, effects were not counted: a master begins a
 * history of its own (history_begin), unless `is_adopted`: the caller continues with history_adopt. */
void backlog_begin(bool is_adopted);
bool backlog_is_on(void); /* any thread */
/* What decides how long it stays: called by worker 0 once a second. `replica_count` returns the number of connected
 * replicas; `forget` closes, with the gate owned, what is kept for others. Before the workers start. */
void backlog_set_users(unsigned (*replica_count)(void), void (*forget)(void));
