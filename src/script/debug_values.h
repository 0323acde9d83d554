/* Values of Lua and replies of commands as text for people who step through a script. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"

#include <lua.h>

void debug_append_value(struct buffer *text, lua_State *L, int index); /* needs no memory of Lua's */
void debug_append_reply(struct buffer *text, struct slice bytes);      /* RESP that our own server has written */
