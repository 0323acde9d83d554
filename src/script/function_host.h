/* Libraries of functions in a worker's Lua state. See script_host.h. */
#pragma once

#include "script/functions.h"
#include "script/script_host.h"

/* Runs the text of a library to see what it registers. NULL: `error` has the reply. One reference, the caller's; not
 * in the set yet. */
struct library *function_host_load(struct script_host *host, struct slice code, struct buffer *error);
/* Loads the function's library if this worker has not yet, runs the function, replies. */
void function_host_call(struct script_host *host, struct request *request, struct function *function, bool read_only,
                        uint32_t key_count);
