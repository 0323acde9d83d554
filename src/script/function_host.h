/* Libraries of functions in a worker's Lua state. In the thread of the host; see script_host.h. */
#pragma once

#include "script/functions.h"
#include "script/script_host.h"

/* Runs the text of a library to find the functions it registers. NULL: `error` has the reply. The caller owns the one
 * reference; the library is not in the set yet. */
struct library *function_host_load(struct script_host *host, struct slice code, struct buffer *error);
/* The same for any thread, and adds the library to the set: so the caller is alone; see server/durable/libraries.h. */
must_check bool function_host_load_source(struct slice source, bool replaces, char *error, size_t error_size);
/* Loads the function's library if this worker has not done so, runs the function, replies. */
void function_host_call(struct script_host *host, struct request *request, struct function *function, bool read_only,
                        uint32_t key_count);
