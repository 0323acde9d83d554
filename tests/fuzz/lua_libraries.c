/* cjson, cmsgpack and struct read outside bytes. Properties: the result is an error or a value; a decoded value can be
 * encoded, decoded again and encoded to the same length, unless it is too deep or has numbers that JSON does not
 * have. */
#include "base/mem.h"
#include "fuzz.h"
#include "script/lua_cjson.h"
#include "script/lua_vm.h"

#define CJSON_ROUND                                                       \
    "local ok, v = pcall(cjson.decode, input) if not ok then return end " \
    "local ok, s = pcall(cjson.encode, v) if not ok then return end "     \
    "assert(#cjson.encode(cjson.decode(s)) == #s)"
#define CMSGPACK_ROUND                                                                           \
    "local ok, v = pcall(cmsgpack.unpack, input) if not ok then return end "                     \
    "local function depth(v) if type(v) ~= 'table' then return 0 end local most = 0 "            \
    "for k, x in pairs(v) do most = math.max(most, depth(k), depth(x)) end return most + 1 end " \
    "if depth(v) > 15 then return end " /* what is deeper is packed as nil */                    \
    "local s = cmsgpack.pack(v) assert(#cmsgpack.pack(cmsgpack.unpack(s)) == #s)"

static const char *const scripts[] = {
    CJSON_ROUND,
    "pcall(cmsgpack.unpack, input)",
    CMSGPACK_ROUND,
    "pcall(cmsgpack.unpack_limit, input, 3, steer % 8)",
    "pcall(struct.unpack, format, input, steer % 8)",
    "pcall(struct.pack, format, input, steer, -steer, steer / 3, input, steer)",
    "pcall(struct.size, format)",
};

static struct lua_vm *vm;

static void set_global(const char *name)
{
    lua_rawgeti(vm->L, LUA_REGISTRYINDEX, vm->globals);
    lua_insert(vm->L, -2);
    lua_setfield(vm->L, -2, name);
    lua_pop(vm->L, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size), format;
    uint8_t which = fuzz_take_byte(&input), steer = fuzz_take_byte(&input);
    lua_State *L;

    if (vm == NULL) {
        vm = lua_vm_create(NULL);
        vm->bytes_most = 64 << 20;
    }
    L = vm->L;
    lua_vm_before(vm);
    lua_cjson_reset(vm->cjson);
    format = fuzz_take_text(&input);
    lua_pushlstring(L, format.data != NULL ? format.data : "", format.size);
    set_global("format");
    lua_pushlstring(L, input.data != NULL ? input.data : "", input.size);
    set_global("input");
    lua_pushinteger(L, steer);
    set_global("steer");
    assert(lua_vm_compile(L, slice_from_text(scripts[which % countof(scripts)]), "@fuzz", false));
    if (lua_pcall(L, 0, 0, 0) != 0)
        assert(strstr(lua_tostring(L, -1), "assertion") == NULL);
    lua_settop(L, 0);
    lua_vm_after(vm);
    return 0;
}
