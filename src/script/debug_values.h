/* Formats Lua values and replies of commands as text for the debugger. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"

#include <lua.h>

void debug_append_value(struct buffer *text, lua_State *L, int index); /* allocates no memory of Lua */
void debug_append_reply(struct buffer *text, struct slice bytes);      /* RESP that this server has written */
