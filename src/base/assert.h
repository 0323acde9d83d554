/* Assertions that stay on in release. A failed one prints place, expression and backtrace to standard error and to the
 * log, through code that needs no lock and no memory, and aborts. They are about the program, never about outside
 * bytes. What costs more than a comparison is a debug_assert: checked only in builds with KEYDB_DEBUG. */
#pragma once

#include "base/compiler.h"

#include <assert.h>

/* The system's macro gives way to ours; what a library asserts arrives in the same place (panic.c). */
#undef assert
#define assert(condition) (LIKELY(condition) ? (void)0 : panic_assertion(#condition, __FILE__, __LINE__, __func__))

#ifdef KEYDB_DEBUG
#define debug_assert(condition) assert(condition)
#else
#define debug_assert(condition) ((void)sizeof((condition) ? 1 : 0))
#endif

NORETURN COLD void panic_assertion(const char *condition, const char *file, int line, const char *function);
