/* Finds the function that contains an address, without a lock and without memory. Signal handlers need this because
 * dladdr takes the loader's lock. It knows the files that were loaded at the setup, and their dynamic symbols. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct symbol_place {
    const char *file;     /* the loader's name of the file: "" for the program */
    const char *function; /* NULL: no known function */
    uintptr_t base;       /* start of the function or, if that is unknown, of the file */
};

/* Once, by the main thread, before other threads start. The files must stay loaded. */
void symbols_setup(void);

/* False: the address is in no known file. Async-signal-safe, any thread. */
must_check bool symbols_find(const void *address, struct symbol_place *place);
