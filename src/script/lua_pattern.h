/* Lua's patterns, and the functions of `string` that take one. LuaJIT's own functions are not suitable: a pattern may
 * take exponential time, and neither a hook nor a signal interrupts it. Here the work is counted, and now and then
 * lua_vm_look is called, which raises an error if the script must end. */
#pragma once

#include <lua.h>

/* Adds find, match, gmatch, gfind and gsub to the table at the top. In protected mode. */
void lua_pattern_add(lua_State *L);
