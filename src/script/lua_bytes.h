/* A buffer in which library functions for scripts build their result. The bytes are in a userdata of the Lua state: an
 * error, which leaves C functions by longjmp, leaks nothing, and the memory limit of the state applies.
 *
 *     struct lua_bytes bytes;
 *     lua_bytes_init(&bytes, L);        pushes one value, which must stay where it is
 *     lua_bytes_append(&bytes, ...);    raises a Lua error beyond LUA_BYTES_MOST
 *     lua_bytes_push(&bytes);           pushes the result as a string */
#pragma once

#include <lua.h>

#include <stddef.h>
#include <string.h>

#define LUA_BYTES_MOST ((size_t)512 << 20) /* the largest bulk string */

struct lua_bytes {
    lua_State *L;
    int index; /* of the userdata with the bytes */
    char *data;
    size_t size, capacity;
};

void lua_bytes_init(struct lua_bytes *bytes, lua_State *L);
void lua_bytes_grow(struct lua_bytes *bytes, size_t more); /* makes room for `more` bytes */
void lua_bytes_push(struct lua_bytes *bytes);

static inline char *lua_bytes_reserve(struct lua_bytes *bytes, size_t size)
{
    if (bytes->capacity - bytes->size < size)
        lua_bytes_grow(bytes, size);
    return bytes->data + bytes->size;
}

static inline void lua_bytes_append(struct lua_bytes *bytes, const void *data, size_t size)
{
    if (size == 0)
        return;
    memcpy(lua_bytes_reserve(bytes, size), data, size);
    bytes->size += size;
}

static inline void lua_bytes_append_char(struct lua_bytes *bytes, char c)
{
    *lua_bytes_reserve(bytes, 1) = c;
    bytes->size++;
}
