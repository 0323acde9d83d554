/* Limits for slow readers of the journal. For a slow replica a background thread moves the unread part beyond
 * journal-memory-limit to a file. A slow append-only file makes writers wait: while it is more than aof-lag-limit
 * behind, writing commands are parked, as in CLIENT PAUSE. */
#pragma once

#include "server/core/lifecycle.h"

#include <stdint.h>

extern const struct lifecycle journal_limits_lifecycle;

uint64_t journal_limits_memory(void); /* journal-memory-limit; 0: none */
void journal_limits_setup(void);      /* adds the options; main thread, once */
