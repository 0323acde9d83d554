/* Ends a broken program: a message, a backtrace, abort. Any thread may call these functions. Signal handlers may call
 * them, too: panic_backtrace and panic_assertion need no lock and no memory, and panic formats its text on the
 * stack. */
#pragma once

#include "base/assert.h"
#include "base/compiler.h"

#include <stdbool.h>

NORETURN COLD void panic(const char *format, ...) PRINTF_LIKE(1, 2);

/* The first thread that panics calls `report` once, after the message and instead of the backtrace, to report the state
 * of the server. The call may come from a signal handler. NULL: no report. */
typedef void (*panic_report_fn)(const char *message);
void panic_set_report(panic_report_fn report);

/* If `exits` is true, a panic ends with exit status 1 after the message, without a core dump (use-exit-on-panic). */
void panic_set_exit(bool exits);

/* Writes the calling thread's frames, one per line, to standard error and to the log. */
void panic_backtrace(void);

/* Call it once at start. It loads what a backtrace needs, since the first backtrace may allocate memory. */
void panic_setup(void);
