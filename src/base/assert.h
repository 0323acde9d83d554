/* Assertions. They stay on in release builds. A failed assertion prints its place, the expression and a backtrace to
 * standard error and to the log, and aborts; this needs no lock and no memory. An assertion checks the program, never
 * bytes from outside. A check that costs more than a comparison is a debug_assert: only builds with KEYDB_DEBUG have
 * it. */
#pragma once

#include "base/compiler.h"

#include <assert.h>

/* Our macro replaces the system's. A failed assertion of a library also arrives in panic.c. */
#undef assert
#define assert(condition) (LIKELY(condition) ? (void)0 : panic_assertion(#condition, __FILE__, __LINE__, __func__))

#ifdef KEYDB_DEBUG
#define debug_assert(condition) assert(condition)
#else
#define debug_assert(condition) ((void)sizeof((condition) ? 1 : 0))
#endif

NORETURN COLD void panic_assertion(const char *condition, const char *file, int line, const char *function);
