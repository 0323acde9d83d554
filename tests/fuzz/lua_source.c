/* The source of scripts before it is compiled. Properties:
 *  1. without patched returns the source does not change, unless a number is refused, which is part of it;
 *  2. with them only insertions are made, and lines stay lines;
 *  3. an accepted source makes no value of LuaJIT's FFI library, which the compiler loads for the first one it meets;
 *  4. a source that Lua compiles without them compiles with them, unless this is the first to nest too deeply. */
#include "base/mem.h"
#include "fuzz.h"
#include "script/lua_source.h"
#include "script/lua_vm.h"

static size_t lines_of(struct slice text)
{
    size_t lines = 0;

    for (size_t i = 0; i < text.size; i++)
        lines += text.data[i] == '\n';
    return lines;
}

/* An insertion may begin like the following source: all ways to read it are tried at once. reached[j]: up to here it
 * can be read with j insertions. */
static void check_insertions(struct slice source, struct slice patched)
{
    static const struct slice inserted = {" true and ", 10};
    const size_t count = (patched.size - source.size) / inserted.size;
    bool *reached = mem_alloc_zero(count + 1);

    assert(patched.size == source.size + count * inserted.size);
    reached[0] = true;
    for (size_t i = 0; i <= source.size; i++) {
        for (size_t j = 0; j < count; j++) {
            size_t at = i + j * inserted.size;

            if (reached[j] && patched.size - at >= inserted.size &&
                memcmp(patched.data + at, inserted.data, inserted.size) == 0)
                reached[j + 1] = true;
        }
        for (size_t j = 0; j <= count && i < source.size; j++)
            reached[j] = reached[j] && patched.data[i + j * inserted.size] == source.data[i];
    }
    assert(reached[count]);
    mem_free(reached);
    assert(lines_of(source) == lines_of(patched));
}

static void check_compiles(struct slice source)
{
    static struct lua_vm *vm;

    if (vm == NULL)
        vm = lua_vm_create(NULL);
    lua_settop(vm->L, 0);
    if (lua_vm_compile(vm->L, source, "@fuzz", false))
        assert(lua_vm_compile(vm->L, source, "@fuzz", true) || strstr(lua_tostring(vm->L, -1), "too ") != NULL ||
               strstr(lua_tostring(vm->L, -1), "overflow") != NULL);
    lua_getfield(vm->L, LUA_REGISTRYINDEX, "_LOADED");
    lua_getfield(vm->L, -1, "ffi");
    assert(lua_isnil(vm->L, -1));
    lua_settop(vm->L, 0);
    lua_vm_after(vm);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice source = slice_make(bytes, size), number = SLICE_EMPTY;
    struct buffer plain = {0}, patched = {0};
    unsigned line = 0;

    if (lua_source_prepare(source, false, &plain, &line, &number)) {
        assert(slice_equal(buffer_slice(&plain), source));
        assert(lua_source_prepare(source, true, &patched, &line, &number));
        check_insertions(source, buffer_slice(&patched));
    } else {
        assert(number.size > 1 && number.data >= source.data && number.data + number.size <= source.data + size);
        assert(line >= 1 && line <= lines_of(source) + 1);
    }
    check_compiles(source);
    buffer_fini(&plain);
    buffer_fini(&patched);
    return 0;
}
