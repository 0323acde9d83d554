/* cmsgpack for scripts: converts between MessagePack and Lua values, with the functions and errors of Redis'
 * cmsgpack. */
#pragma once

#include <lua.h>

void lua_cmsgpack_open(lua_State *L); /* pushes the library's table */
