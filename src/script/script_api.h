/* What scripts reach the server by: redis.call and all else in `redis`, which is there as `keydb` and `server`, too. */
#pragma once

#include "script/lua_vm.h"

/* For whom: scripts; functions while they run; libraries while they are loaded. */
enum script_api_set { SCRIPT_API_SCRIPTS = 1, SCRIPT_API_FUNCTIONS = 2, SCRIPT_API_LOADING = 4 };
void script_api_push(lua_State *L, enum script_api_set set); /* a new table. In protected mode */
void script_api_open(struct lua_vm *vm);                     /* in protected mode */
void script_api_setup(void);                                 /* before the workers start */
void script_api_watch(lua_State *L);                         /* has the hook called from time to time, as usual */
void script_api_watch_all(lua_State *L);              /* the script is to end: has it called for each instruction */
void script_api_look(lua_State *L);                   /* what the hook does, without a debugger */
int script_api_pcall(lua_State *L);                   /* redis.pcall */
void script_api_hook(lua_State *L, lua_Debug *debug); /* called now and then while a script runs */
