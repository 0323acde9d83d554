/* What scripts reach the server by: redis.call and all else in `redis`, which is there as `keydb` and `server`, too. */
#pragma once

#include "script/lua_vm.h"

void script_api_open(struct lua_vm *vm);           /* in protected mode */
void script_api_hook(lua_State *L, lua_Debug *debug); /* called now and then while a script runs */
