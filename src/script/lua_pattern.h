/* Lua's patterns, and the functions of `string` that take one. LuaJIT's own could not be used: a pattern may take
 * exponential time, and neither a hook nor a signal gets into it. Here the work is counted, and once in a while
 * lua_vm_look is asked, which raises an error if the script is to end. */
#pragma once

#include <lua.h>

/* find, match, gmatch, gfind and gsub, into the table at the top. In protected mode. */
void lua_pattern_add(lua_State *L);
