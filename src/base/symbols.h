/* Which function an address is in, found without a lock and without memory, for signal handlers: dladdr takes the
 * loader's lock. Known are the files that were loaded at the setup, and their dynamic symbols. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct symbol_place {
    const char *file;     /* as the loader knows it: "" for the program */
    const char *function; /* NULL: none that is known */
    uintptr_t base;       /* the function's begin, or the file's */
};

/* Once, by the main thread before there are others; the files must stay loaded. */
void symbols_setup(void);

/* False: in no file that is known. Async-signal-safe, any thread. */
must_check bool symbols_find(const void *address, struct symbol_place *place);
