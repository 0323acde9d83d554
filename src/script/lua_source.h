/* What happens to the source of a script before Lua compiles it. Pure: no state, no Lua. Any thread.
 *
 * 1. A number with a suffix of LuaJIT's (42LL, 42ULL, 42LLU, 3i) would be a value of its FFI library, which scripts
 *    have nothing to do with: such a number is refused, as Lua 5.1 refuses it.
 * 2. Of what a script returns only the first value counts. LuaJIT leaves no trace of a function that ends in
 *    "return f()" while f runs, and an error in f could not name its line. So the script's own returns (not those of
 *    functions in it) become "return true and f()", which is the same first value, and no tail call. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>

/* Appends the source to compile to `out`; lines stay what they were. False: such a number stands in line *line, and
 * *number is it. What is no Lua at all is for the compiler to refuse. */
must_check bool lua_source_prepare(struct slice source, bool patch_returns, struct buffer *out, unsigned *line,
                                   struct slice *number);
