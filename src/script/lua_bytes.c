#include "script/lua_bytes.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "script/lua_vm.h"

#include <lauxlib.h>

enum { FIRST_BYTES = 256 };

void lua_bytes_init(struct lua_bytes *bytes, lua_State *L)
{
    luaL_checkstack(L, 2, "no room for a result");
    *bytes = (struct lua_bytes){.L = L, .capacity = FIRST_BYTES};
    bytes->data = lua_newuserdata(L, FIRST_BYTES);
    bytes->index = lua_gettop(L);
}

void lua_bytes_grow(struct lua_bytes *bytes, size_t more)
{
    size_t capacity;
    char *data;

    assert(bytes->size <= bytes->capacity && bytes->index <= lua_gettop(bytes->L));
    if (more > LUA_BYTES_MOST - bytes->size)
        luaL_error(bytes->L, "result of more than %d bytes", (int)LUA_BYTES_MOST);
    capacity = MIN(MAX(bytes->capacity * 2, bytes->size + more), LUA_BYTES_MOST);
    luaL_checkstack(bytes->L, 1, "no room for a result");
    data = lua_newuserdata(bytes->L, capacity);
    memcpy(data, bytes->data, bytes->size);
    lua_vm_look(bytes->L, lua_vm_of(bytes->L), bytes->size);
    lua_replace(bytes->L, bytes->index);
    bytes->data = data;
    bytes->capacity = capacity;
    assert(bytes->capacity - bytes->size >= more);
}

void lua_bytes_push(struct lua_bytes *bytes)
{
    assert(lua_touserdata(bytes->L, bytes->index) == bytes->data);
    lua_pushlstring(bytes->L, bytes->data, bytes->size);
}
