/* Lines for the log from places where locks are held: written when the worker holds none any more. A command or script
 * that makes more than DEFERRED_LOG_BYTES of them has the rest counted, and one line tells how many were left out. */
#pragma once

#include "base/compiler.h"
#include "base/log.h"
#include "server/core/lifecycle.h"

extern const struct lifecycle deferred_log_lifecycle;

struct worker;

enum { DEFERRED_LOG_BYTES = 64 * 1024 };

/* The worker's thread: the line comes with its deferred work, before it serves anything else. Another thread (one that
 * loads data and holds no lock): at once. */
void deferred_log(struct worker *worker, enum log_level level, const char *format, ...) PRINTF_LIKE(3, 4);
