/* cjson for scripts: JSON to Lua values and back, with the functions and errors scripts know from Redis. */
#pragma once

#include <lua.h>

struct cjson_options;

/* Pushes the library's table. What its functions encode_max_depth() and the like set is in `*options`, which lives as
 * long as the table. */
void lua_cjson_open(lua_State *L, struct cjson_options **options);
/* Forgets what a script has set, so that the next one finds the usual behaviour whichever thread runs it. */
void lua_cjson_reset(struct cjson_options *options);
