/* The libraries of functions, for what saves and loads data; the part that runs them, above, fills this in. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

struct libraries_keeper {
    void (*each)(void (*visit)(struct slice source, void *context), void *context);
    bool (*load)(struct slice source, bool replaces, char *error, size_t error_size);
    void (*flush)(void);
};
void libraries_provide(const struct libraries_keeper *keeper); /* once, before anything is loaded; stays the caller's */

/* The source of each library, as FUNCTION LOAD takes it. Whoever calls is inside of the gate, owns it, or is a forked
 * child: nothing is locked. */
void libraries_each(void (*visit)(struct slice source, void *context), void *context);
/* Whoever calls owns the gate; any thread. False: *error says why not, without a code. `replaces`: a library of the
 * same name, which else is an error. */
must_check bool libraries_load(struct slice source, bool replaces, char *error, size_t error_size);
void libraries_flush(void); /* likewise */
