/* Limits for slow readers of the journal. For a slow replica a background thread moves the unread part beyond
 * journal-memory-limit to a file. A slow append-only file makes writers wait: while it is more than aof-lag-limit
 * behind, writing commands are parked, as in CLIENT PAUSE. */
#pragma once

#include "server/core/lifecycle.h"

extern const struct lifecycle journal_limits_lifecycle;

void journal_limits_setup(void); /* adds the options; main thread, once */
