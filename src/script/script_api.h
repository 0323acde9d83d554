/* The functions with which scripts use the server: redis.call and all others in `redis`, also named `keydb` and
 * `server`. */
#pragma once

#include "script/lua_vm.h"

/* Sets of functions: for scripts; for functions while they run; for libraries while they load. */
enum script_api_set { SCRIPT_API_SCRIPTS = 1, SCRIPT_API_FUNCTIONS = 2, SCRIPT_API_LOADING = 4 };
void script_api_push(lua_State *L, enum script_api_set set); /* a new table. In protected mode */
/* Takes the table on top, and gives it to the globals at this index under all names that scripts may know. */
void script_api_set(lua_State *L, int globals);
void script_api_open(struct lua_vm *vm);              /* in protected mode */
void script_api_setup(void);                          /* before the workers start */
void script_api_watch(lua_State *L);                  /* calls the hook now and then, as usual */
void script_api_watch_all(lua_State *L);              /* the script must end: calls the hook for each instruction */
void script_api_look(lua_State *L);                   /* the work of the hook without a debugger */
int script_api_pcall(lua_State *L);                   /* redis.pcall */
void script_api_hook(lua_State *L, lua_Debug *debug); /* called now and then while a script runs */
