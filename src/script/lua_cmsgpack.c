/* Packed: nil, booleans, integers in the shortest form, floats where they are exact else doubles, strings (never the
 * "bin" types), arrays and maps. A table is an array if its keys are 1 ... n. Tables deeper than PACK_DEPTH_MOST are
 * packed as nil; unpacked values may nest as deep as lua_checkstack allows. Counts in the input are not trusted: memory
 * is allocated as values arrive. */
#include "script/lua_cmsgpack.h"

#include "base/compiler.h"
#include "script/lua_bytes.h"

#include <lauxlib.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { PACK_DEPTH_MOST = 16, UNPACK_DEPTH_MOST = 2000 };

/* ------------------------------------------------------------------------------------------------------ packing -- */

/* A type byte and `size` bytes of `number`, most significant first. */
static void put(struct lua_bytes *bytes, unsigned char type, uint64_t number, unsigned size)
{
    char *at = lua_bytes_reserve(bytes, 9);

    at[0] = (char)type;
    for (unsigned i = 0; i < size; i++)
        at[1 + i] = (char)(number >> 8 * (size - 1 - i));
    bytes->size += 1 + size;
}

static void pack_integer(struct lua_bytes *bytes, int64_t number)
{
    uint64_t n = (uint64_t)number;

    if (number >= 0) {
        if (n <= 0x7f)
            put(bytes, (unsigned char)n, 0, 0);
        else if (n <= UINT8_MAX)
            put(bytes, 0xcc, n, 1);
        else if (n <= UINT16_MAX)
            put(bytes, 0xcd, n, 2);
        else if (n <= UINT32_MAX)
            put(bytes, 0xce, n, 4);
        else
            put(bytes, 0xcf, n, 8);
    } else if (number >= -32) {
        put(bytes, (unsigned char)n, 0, 0);
    } else if (number >= INT8_MIN) {
        put(bytes, 0xd0, n, 1);
    } else if (number >= INT16_MIN) {
        put(bytes, 0xd1, n, 2);
    } else if (number >= INT32_MIN) {
        put(bytes, 0xd2, n, 4);
    } else {
        put(bytes, 0xd3, n, 8);
    }
}

static void pack_number(struct lua_bytes *bytes, double number)
{
    float narrow = (float)number;
    uint32_t bits32;
    uint64_t bits64;

    if (number >= -9223372036854775808.0 && number < 9223372036854775808.0 && floor(number) == number) {
        pack_integer(bytes, (int64_t)number);
    } else if ((double)narrow == number) {
        memcpy(&bits32, &narrow, sizeof(bits32));
        put(bytes, 0xca, bits32, 4);
    } else {
        memcpy(&bits64, &number, sizeof(bits64));
        put(bytes, 0xcb, bits64, 8);
    }
}

static void pack_string(struct lua_bytes *bytes, const char *text, size_t size)
{
    if (size <= 31)
        put(bytes, (unsigned char)(0xa0 | size), 0, 0);
    else if (size <= UINT8_MAX)
        put(bytes, 0xd9, size, 1);
    else if (size <= UINT16_MAX)
        put(bytes, 0xda, size, 2);
    else
        put(bytes, 0xdb, size, 4);
    lua_bytes_append(bytes, text, size);
}

static void pack_count(struct lua_bytes *bytes, uint64_t count, unsigned char small, unsigned char large)
{
    if (count <= 15)
        put(bytes, (unsigned char)(small | count), 0, 0);
    else if (count <= UINT16_MAX)
        put(bytes, large, count, 2);
    else
        put(bytes, (unsigned char)(large + 1), count, 4);
}

/* How many items the table at the top has; *is_array: their keys are 1 ... n. */
static uint32_t count_items(lua_State *L, bool *is_array)
{
    double largest = 0;
    uint32_t count = 0;

    *is_array = true;
    lua_pushnil(L);
    while (lua_next(L, -2) != 0) {
        double key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;

        lua_pop(L, 1);
        *is_array = *is_array && key >= 1 && floor(key) == key;
        largest = MAX(largest, key);
        count++;
    }
    *is_array = *is_array && largest == count;
    return count;
}

/* Takes the value at the top. */
static void pack_value(struct lua_bytes *bytes, int depth);

static void pack_table(struct lua_bytes *bytes, int depth)
{
    lua_State *L = bytes->L;
    bool is_array;
    uint32_t count;

    luaL_checkstack(L, 4, "in function mp_encode_lua_table");
    count = count_items(L, &is_array);
    if (is_array) {
        pack_count(bytes, count, 0x90, 0xdc);
        for (uint32_t i = 1; i <= count; i++) {
            lua_rawgeti(L, -1, (int)i);
            pack_value(bytes, depth);
        }
        return;
    }
    pack_count(bytes, count, 0x80, 0xde);
    lua_pushnil(L);
    while (lua_next(L, -2) != 0) {
        lua_pushvalue(L, -2);
        pack_value(bytes, depth);
        pack_value(bytes, depth);
    }
}

static void pack_value(struct lua_bytes *bytes, int depth)
{
    lua_State *L = bytes->L;
    int type = lua_type(L, -1);
    const char *text;
    size_t size;

    if (type == LUA_TSTRING) {
        text = lua_tolstring(L, -1, &size);
        pack_string(bytes, text, size);
    } else if (type == LUA_TNUMBER) {
        pack_number(bytes, lua_tonumber(L, -1));
    } else if (type == LUA_TBOOLEAN) {
        put(bytes, lua_toboolean(L, -1) ? 0xc3 : 0xc2, 0, 0);
    } else if (type == LUA_TTABLE && depth < PACK_DEPTH_MOST) {
        pack_table(bytes, depth + 1);
    } else {
        put(bytes, 0xc0, 0, 0);
    }
    lua_pop(L, 1);
}

static int cmsgpack_pack(lua_State *L)
{
    int count = lua_gettop(L);
    struct lua_bytes bytes;

    if (count == 0)
        return luaL_argerror(L, 0, "MessagePack pack needs input.");
    lua_bytes_init(&bytes, L);
    luaL_checkstack(L, 4, "in function mp_pack");
    for (int i = 1; i <= count; i++) {
        lua_pushvalue(L, i);
        pack_value(&bytes, 0);
    }
    lua_bytes_push(&bytes);
    return 1;
}

/* ---------------------------------------------------------------------------------------------------- unpacking -- */

struct unpacker {
    lua_State *L;
    const unsigned char *at, *end;
};

static void need(struct unpacker *unpacker, uint64_t size)
{
    if ((uint64_t)(unpacker->end - unpacker->at) < size)
        luaL_error(unpacker->L, "Missing bytes in input.");
}

static uint64_t take(struct unpacker *unpacker, unsigned size)
{
    uint64_t number = 0;

    need(unpacker, size);
    for (unsigned i = 0; i < size; i++)
        number = number << 8 | *unpacker->at++;
    return number;
}

static void push_bytes(struct unpacker *unpacker, uint64_t size)
{
    need(unpacker, size);
    lua_pushlstring(unpacker->L, (const char *)unpacker->at, (size_t)size);
    unpacker->at += size;
}

static void push_float(struct unpacker *unpacker)
{
    uint32_t bits = (uint32_t)take(unpacker, 4);
    float number;

    memcpy(&number, &bits, sizeof(number));
    lua_pushnumber(unpacker->L, (double)number);
}

static void push_double(struct unpacker *unpacker)
{
    uint64_t bits = take(unpacker, 8);
    double number;

    memcpy(&number, &bits, sizeof(number));
    lua_pushnumber(unpacker->L, number);
}

static void unpack_value(struct unpacker *unpacker, int depth);

static void descend(struct unpacker *unpacker, int depth, const char *where)
{
    if (depth > UNPACK_DEPTH_MOST || lua_checkstack(unpacker->L, 4) == 0)
        luaL_error(unpacker->L, "stack overflow (%s)", where);
}

static void unpack_array(struct unpacker *unpacker, uint64_t count, int depth)
{
    descend(unpacker, depth, "in function mp_decode_to_lua_array");
    need(unpacker, count); /* an item takes a byte at least */
    lua_newtable(unpacker->L);
    for (uint64_t i = 1; i <= count; i++) {
        unpack_value(unpacker, depth);
        lua_rawseti(unpacker->L, -2, (int)i);
    }
}

static void unpack_map(struct unpacker *unpacker, uint64_t count, int depth)
{
    lua_State *L = unpacker->L;

    descend(unpacker, depth, "in function mp_decode_to_lua_hash");
    need(unpacker, count * 2);
    lua_newtable(L);
    for (uint64_t i = 0; i < count; i++) {
        unpack_value(unpacker, depth);
        unpack_value(unpacker, depth);
        lua_settable(L, -3); /* an error where the key is nil or not a number */
    }
}

static int64_t signed_of(uint64_t number, unsigned size)
{
    unsigned shift = 64 - 8 * size;

    return (int64_t)(number << shift) >> shift;
}

/* Types from 0xc0 to 0xdf. */
static void unpack_typed(struct unpacker *unpacker, unsigned type, int depth)
{
    lua_State *L = unpacker->L;
    unsigned size = 1U << (type & 3);

    switch (type) {
    case 0xc0:
        lua_pushnil(L);
        break;
    case 0xc2:
    case 0xc3:
        lua_pushboolean(L, type == 0xc3);
        break;
    case 0xca:
        push_float(unpacker);
        break;
    case 0xcb:
        push_double(unpacker);
        break;
    case 0xcc:
    case 0xcd:
    case 0xce:
        lua_pushnumber(L, (double)take(unpacker, size));
        break;
    case 0xcf:
        lua_pushnumber(L, (double)(int64_t)take(unpacker, size)); /* as signed, so that -1 comes back as it went */
        break;
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        lua_pushnumber(L, (double)signed_of(take(unpacker, size), size));
        break;
    case 0xd9:
        push_bytes(unpacker, take(unpacker, 1));
        break;
    case 0xda:
        push_bytes(unpacker, take(unpacker, 2));
        break;
    case 0xdb:
        push_bytes(unpacker, take(unpacker, 4));
        break;
    case 0xdc:
    case 0xdd:
        unpack_array(unpacker, take(unpacker, type == 0xdc ? 2 : 4), depth + 1);
        break;
    case 0xde:
    case 0xdf:
        unpack_map(unpacker, take(unpacker, type == 0xde ? 2 : 4), depth + 1);
        break;
    default:
        luaL_error(L, "Bad data format in input.");
    }
}

static void unpack_value(struct unpacker *unpacker, int depth)
{
    unsigned type = (unsigned)take(unpacker, 1);

    luaL_checkstack(unpacker->L, 1, "too many return values at once; use unpack_one or unpack_limit instead.");
    if (type <= 0x7f)
        lua_pushnumber(unpacker->L, type);
    else if (type <= 0x8f)
        unpack_map(unpacker, type & 15, depth + 1);
    else if (type <= 0x9f)
        unpack_array(unpacker, type & 15, depth + 1);
    else if (type <= 0xbf)
        push_bytes(unpacker, type & 31);
    else if (type >= 0xe0)
        lua_pushnumber(unpacker->L, (double)type - 256);
    else
        unpack_typed(unpacker, type, depth);
}

/* Pushes up to `limit` values (0: all) from `offset` on. With a limit the offset behind them comes first, -1 at the
 * end. */
static int unpack_some(lua_State *L, double limit, double offset)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    struct unpacker unpacker = {L, (const unsigned char *)text, (const unsigned char *)text + size};
    int count = 0;
    bool all = limit == 0;

    if (offset < 0 || limit < 0)
        return luaL_error(L, "Invalid request to unpack with offset of %d and limit of %d.", (int)offset, (int)size);
    if (offset > (double)size)
        return luaL_error(L, "Start offset %d greater than input length %d.", (int)offset, (int)size);
    unpacker.at += (size_t)offset;
    lua_settop(L, 1);
    lua_pushnil(L); /* where the offset goes */
    while (unpacker.at < unpacker.end && (all || count < limit)) {
        luaL_checkstack(L, 2, "too many return values at once; use unpack_one or unpack_limit instead.");
        unpack_value(&unpacker, 0);
        count++;
    }
    if (all)
        return count;
    lua_pushnumber(L, unpacker.at == unpacker.end ? -1 : (double)((const char *)unpacker.at - text));
    lua_replace(L, 2);
    return count + 1;
}

static double check_int(lua_State *L, int index, double missing)
{
    double number = lua_isnoneornil(L, index) ? missing : trunc(luaL_checknumber(L, index));

    return number >= INT_MIN && number <= INT_MAX ? number : -1;
}

static int cmsgpack_unpack(lua_State *L)
{
    return unpack_some(L, 0, 0);
}

static int cmsgpack_unpack_one(lua_State *L)
{
    return unpack_some(L, 1, check_int(L, 2, 0));
}

static int cmsgpack_unpack_limit(lua_State *L)
{
    (void)luaL_checknumber(L, 2);
    return unpack_some(L, check_int(L, 2, 0), check_int(L, 3, 0));
}

void lua_cmsgpack_open(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"pack", cmsgpack_pack},
        {"unpack", cmsgpack_unpack},
        {"unpack_one", cmsgpack_unpack_one},
        {"unpack_limit", cmsgpack_unpack_limit},
    };

    luaL_checkstack(L, 3, "no room for a library");
    lua_newtable(L);
    for (size_t i = 0; i < countof(functions); i++) {
        lua_pushcfunction(L, functions[i].func);
        lua_setfield(L, -2, functions[i].name);
    }
    lua_pushliteral(L, "cmsgpack");
    lua_setfield(L, -2, "_NAME");
    lua_pushliteral(L, "lua-cmsgpack 0.4.0"); /* whose functions these are, for scripts that ask */
    lua_setfield(L, -2, "_VERSION");
    lua_pushliteral(L, "MessagePack for scripts");
    lua_setfield(L, -2, "_DESCRIPTION");
}
