/* cmsgpack for scripts: MessagePack to Lua values and back, with the functions and errors scripts know from Redis. */
#pragma once

#include <lua.h>

void lua_cmsgpack_open(lua_State *L); /* pushes the library's table */
