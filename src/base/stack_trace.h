/* The frames of any thread of the process, written to the log from where it stands: by a signal (SIGUSR2) that the
 * thread answers itself. Everything but the setup is async-signal-safe. One caller at a time. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <sys/types.h>

/* Once, by the main thread before there are others. */
void stack_trace_setup(void);

void stack_trace_self(void); /* the calling thread's frames, a header line first */

/* False: it did not answer within the time (it may be gone, or the kernel holds it). */
must_check bool stack_trace_thread(pid_t thread, int limit_ms);

/* All threads but the calling one. With `hold` they stay where they are for ever: nothing moves any more. */
void stack_trace_others(bool hold);
