/* cjson for scripts: converts between JSON and Lua values, with the functions and errors of Redis' cjson. */
#pragma once

#include <lua.h>
#include <stdbool.h>

/* How numbers are encoded that JSON does not have. */
enum cjson_invalid { CJSON_INVALID_REFUSED, CJSON_INVALID_PRINTED, CJSON_INVALID_NULL };

struct cjson_options {
    int encode_depth, decode_depth, precision;
    int sparse_ratio, sparse_safe;
    bool sparse_convert, keep_buffer, decode_invalid;
    enum cjson_invalid encode_invalid;
    bool changed; /* since it was set to false, a function of the library has changed a setting */
};

/* Pushes the library's table. Functions like encode_max_depth() change `*options`, which lives as long as the table. */
void lua_cjson_open(lua_State *L, struct cjson_options **options);
/* Restores the initial settings. */
void lua_cjson_reset(struct cjson_options *options);
