/* Functions of C that scripts call and that call functions of scripts. The stack of C is one for all coroutines, and
 * Lua looks after its own only, so each such call is counted (lua_vm_enter), along the chain of coroutines that have
 * resumed each other.
 *
 * They are also where a script that is to end cannot get past: whoever has caught an error, or an end of a coroutine,
 * asks (lua_vm_look) before it gives control back to what caught it. */
#pragma once

#include <lua.h>

/* The table at the top gets its functions; LuaJIT's own library is at `source`. In protected mode. */
void lua_calls_add_base(lua_State *L);
void lua_calls_add_string(lua_State *L, int source);
void lua_calls_add_table(lua_State *L, int source);
void lua_calls_add_coroutine(lua_State *L, int source);
