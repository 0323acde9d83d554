/* Prepares the source of a script before Lua compiles it. Pure functions without state. Any thread.
 *
 *  1. A number with a suffix of LuaJIT (42LL, 42ULL, 42LLU, 3i) would be a value of its FFI library, which scripts must
 *     not use. Such a number is refused, as in Lua 5.1.
 *  2. Only the first value that a script returns counts. LuaJIT leaves no trace of a function that ends in "return
 *     f()" while f runs, so an error in f could not name its line. Therefore the script's own returns (not those of
 *     its functions) become "return true and f()", which has the same first value and is not a tail call. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>

/* Appends the source to compile to `out`; line numbers do not change. False: line *line has such a number, *number.
 * Other errors are left to the compiler. */
must_check bool lua_source_prepare(struct slice source, bool patch_returns, struct buffer *out, unsigned *line,
                                   struct slice *number);
