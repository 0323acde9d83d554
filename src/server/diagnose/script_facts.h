/* What the server tells of scripts and functions (INFO, MEMORY STATS); the part that runs them, above, fills it in. */
#pragma once

#include <stdint.h>

struct script_facts {
    uint64_t vm_bytes;                             /* of the Lua states of all workers */
    uint64_t cached_scripts, cached_scripts_bytes;
    uint64_t evicted_scripts;
    uint64_t functions, libraries, functions_bytes;
};

/* Once, before the workers start. `read` may be called by any thread. */
void script_facts_provide(void (*read)(struct script_facts *facts));
struct script_facts script_facts(void); /* zeroes while nobody provides them */
