/* cjson for scripts: JSON to Lua values and back, with the functions and errors scripts know from Redis. */
#pragma once

#include <lua.h>
#include <stdbool.h>

/* What is done with numbers that JSON does not know. */
enum cjson_invalid { CJSON_INVALID_REFUSED, CJSON_INVALID_PRINTED, CJSON_INVALID_NULL };

struct cjson_options {
    int encode_depth, decode_depth, precision;
    int sparse_ratio, sparse_safe;
    bool sparse_convert, keep_buffer, decode_invalid;
    enum cjson_invalid encode_invalid;
    bool changed; /* since it was made false: a function of the library was told something */
};

/* Pushes the library's table. What its functions encode_max_depth() and the like set is in `*options`, which lives as
 * long as the table. */
void lua_cjson_open(lua_State *L, struct cjson_options **options);
/* As they are at the beginning. */
void lua_cjson_reset(struct cjson_options *options);
