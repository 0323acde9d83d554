/* Writes the stack frames of any thread of the process to the log. A signal (SIGUSR2) makes that thread write its own
 * frames. All functions except the setup are async-signal-safe. One thread at a time may call them. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <sys/types.h>

/* Once, by the main thread, before other threads start. */
void stack_trace_setup(void);

void stack_trace_self(void); /* writes the calling thread's frames, after a header line */

/* False: the thread did not answer within the limit. It may have ended, or the kernel may hold it. */
must_check bool stack_trace_thread(pid_t thread, int limit_ms);

/* Writes the frames of all threads except the calling one. With `hold` these threads stop there for ever. */
void stack_trace_others(bool hold);
