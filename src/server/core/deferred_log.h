/* Log lines from code that holds locks: they are written when the worker holds none. If a command or script makes more
 * than DEFERRED_LOG_BYTES of them, the rest is only counted, and one line tells how many were left out. */
#pragma once

#include "base/compiler.h"
#include "base/log.h"
#include "server/core/lifecycle.h"

extern const struct lifecycle deferred_log_lifecycle;

struct worker;

enum { DEFERRED_LOG_BYTES = 64 * 1024 };

/* Any thread. In the worker's own thread the line is written with the deferred work, before anything else is served. In
 * another thread (a loader, which holds no lock) it is written at once. */
void deferred_log(struct worker *worker, enum log_level level, const char *format, ...) PRINTF_LIKE(3, 4);
