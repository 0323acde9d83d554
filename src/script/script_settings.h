/* Settings of cjson: cjson.encode_max_depth() and similar calls in a script also apply to later scripts in any worker,
 * until SCRIPT FLUSH. Settings of functions are separate and permanent.
 *
 * Each Lua state has its own settings. They are updated before a run, and published after a run that has changed them.
 * Any worker; the lock (LOCK_REGISTRY, a leaf) is taken only if something has changed. */
#pragma once

#include "script/lua_cjson.h"

#include <stdbool.h>
#include <stdint.h>

struct script_settings { /* the settings of one state; its owner's */
    bool of_functions;
    uint32_t version;
};

void script_settings_setup(void); /* main thread, before the workers start */
void script_settings_before(struct script_settings *settings, struct cjson_options *options, bool is_function);
void script_settings_after(struct script_settings *settings, const struct cjson_options *options);
void script_settings_reset(void); /* SCRIPT FLUSH */
