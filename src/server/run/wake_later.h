/* Clients that wait for time to pass, not for a change of their key: at a given time all that wait for the key are
 * served, as after a change of it (blocked.h), in order of arrival. So XREADGROUP CLAIM gets what has become idle
 * enough.
 *
 * Whoever finds that there is nothing for a client yet, but will be, says when: each worker for itself, once for a key,
 * with the earliest time that it was told. When that has come nothing else is remembered: who still has to wait says so
 * again. While writes are refused or paused, or the key's stripe is held, it comes a little later. A worker's own
 * thread. */
#pragma once

#include "server/core/lifecycle.h"
#include "store/access.h"

#include <stdint.h>

extern const struct lifecycle wake_later_lifecycle;

struct worker;

/* The worker's thread, inside the gate. after_ms may be any number. The key is copied. */
void wake_later(struct worker *worker, unsigned db, const struct key *key, int64_t after_ms);
