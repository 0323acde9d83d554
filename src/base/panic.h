/* The end of a broken program: a message, a backtrace, abort. Any thread, also from a signal handler (panic_backtrace
 * and panic_assertion use no lock and no memory; panic formats its text on the stack). */
#pragma once

#include "base/assert.h"
#include "base/compiler.h"

#include <stdbool.h>

NORETURN COLD void panic(const char *format, ...) PRINTF_LIKE(1, 2);

/* Called once, by the first thread that panics, after the message and instead of the backtrace: to say what is known
 * about the running server. It may be in a signal handler. NULL: nobody. */
typedef void (*panic_report_fn)(const char *message);
void panic_set_report(panic_report_fn report);

/* With `exits` a panic ends with exit status 1 after the message, without a core (use-exit-on-panic). */
void panic_set_exit(bool exits);

/* Writes the calling thread's frames, one a line, to standard error and to the log. */
void panic_backtrace(void);

/* Loads what the backtrace needs (it may allocate at its first use): once at start. */
void panic_setup(void);
