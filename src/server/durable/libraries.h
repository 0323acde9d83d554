/* Scripts and libraries of functions, for parts that save and load them or report on them (INFO, MEMORY STATS). The
 * part that runs scripts is above these, and provides the functions. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct script_facts {
    uint64_t vm_bytes; /* memory of the Lua states of all workers */
    uint64_t cached_scripts, cached_scripts_bytes;
    uint64_t evicted_scripts;
    uint64_t functions, libraries, functions_bytes;
};

struct libraries_keeper {
    void (*facts)(struct script_facts *facts); /* any thread */
    void (*each)(void (*visit)(struct slice source, void *context), void *context);
    void (*each_name)(void (*visit)(struct slice name, void *context), void *context);
    bool (*load)(struct slice source, bool replaces, char *error, size_t error_size);
    void (*flush)(void);
    bool (*find)(struct slice name, struct slice *source);
};
void libraries_provide(
    const struct libraries_keeper *provided); /* once, before anything is loaded; the caller keeps the struct valid */

struct script_facts script_facts(void); /* all zero if nothing is provided; any thread */
/* Visits the source of each library, as FUNCTION LOAD takes it. Whoever calls is inside of the gate, owns it, or is a
 * forked child: nothing is locked. */
void libraries_each(void (*visit)(struct slice source, void *context), void *context);
void libraries_each_name(void (*visit)(struct slice name, void *context), void *context); /* likewise */
/* Whoever calls owns the gate; any thread. False: *error has the reason, without a code. `replaces`: replaces a library
 * of the same name; otherwise that is an error. */
must_check bool libraries_load(struct slice source, bool replaces, char *error, size_t error_size);
void libraries_flush(void); /* whoever calls owns the gate */
/* The source of the library with this name; false: there is none. Whoever calls is inside of the gate, or owns it; the
 * source is valid until it leaves. */
bool libraries_find(struct slice name, struct slice *source);
