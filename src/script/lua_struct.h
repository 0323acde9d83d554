/* struct for scripts: converts between C structures and Lua values, with the functions and errors of Redis' struct. */
#pragma once

#include <lua.h>

void lua_struct_open(lua_State *L); /* pushes the library's table */
