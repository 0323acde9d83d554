/* What scripts set with cjson.encode_max_depth() and its like holds for those that come after them, whichever worker
 * runs them: until SCRIPT FLUSH for scripts, for good for functions, which do not see what scripts have set.
 *
 * Each Lua state has settings of its own; they are brought up to date before a run, and handed on after one that has
 * changed them. Any worker; the lock (LOCK_REGISTRY, a leaf) is taken only where something has changed. */
#pragma once

#include "script/lua_cjson.h"

#include <stdbool.h>
#include <stdint.h>

struct script_settings { /* which those are that a state has; its owner's */
    bool of_functions;
    uint32_t version;
};

void script_settings_setup(void); /* main thread, before the workers start */
void script_settings_before(struct script_settings *settings, struct cjson_options *options, bool is_function);
void script_settings_after(struct script_settings *settings, const struct cjson_options *options);
void script_settings_reset(void); /* SCRIPT FLUSH */
