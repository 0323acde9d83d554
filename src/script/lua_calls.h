/* C functions for scripts that call functions of scripts. All coroutines share the C stack, and Lua limits only its own
 * stack. So each such call is counted (lua_vm_enter), along the chain of coroutines that have resumed each other.
 *
 * A script that must end cannot get past these functions: when one of them has caught an error, or the end of a
 * coroutine, it calls lua_vm_look before it returns to the script. */
#pragma once

#include <lua.h>

/* Adds the functions to the table at the top; LuaJIT's own library is at `source`. In protected mode. */
void lua_calls_add_base(lua_State *L);
void lua_calls_add_string(lua_State *L, int source);
void lua_calls_add_table(lua_State *L, int source);
void lua_calls_add_coroutine(lua_State *L, int source);
