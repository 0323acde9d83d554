/* Lines for the log from places where locks are held: written when the worker holds none any more. */
#pragma once

#include "base/compiler.h"
#include "base/log.h"
#include "server/core/lifecycle.h"

extern const struct lifecycle deferred_log_lifecycle;

struct worker;

/* The worker's thread: the line comes with its deferred work, before it serves anything else. Another thread (one that
 * loads data and holds no lock): at once. */
void deferred_log(struct worker *worker, enum log_level level, const char *format, ...) PRINTF_LIKE(3, 4);
