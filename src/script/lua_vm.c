#include "script/lua_vm.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/random.h"
#include "script/lua_bytes.h"
#include "script/lua_calls.h"
#include "script/lua_cjson.h"
#include "script/lua_cmsgpack.h"
#include "script/lua_pattern.h"
#include "script/lua_source.h"
#include "script/lua_struct.h"

#include <luajit.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { NAME_BYTES_MOST = 80, COLLECT_BYTES = 8 << 20, PIECE_BYTES = 4096 };

static const char guard_mark; /* its address is the key of the guarded table in a guard's metatable */

/* ------------------------------------------------------------------------------------------------------- memory -- */

static void *allocate(void *context, void *memory, size_t old_size, size_t new_size)
{
    struct lua_vm *vm = context;
    size_t bytes = lua_vm_bytes(vm);
    void *moved;

    if (memory == NULL)
        old_size = 0;
    if (new_size == 0) {
        mem_free(memory);
        atomic_store_explicit(&vm->bytes, bytes - old_size, memory_order_relaxed);
        return NULL;
    }
    if (new_size > old_size && (new_size - old_size > vm->bytes_most || bytes > vm->bytes_most - (new_size - old_size)))
        return NULL;
    moved = mem_try_realloc(memory, new_size);
    if (moved != NULL)
        atomic_store_explicit(&vm->bytes, bytes - old_size + new_size, memory_order_relaxed);
    return moved;
}

/* ------------------------------------------------------------------------------------------------------- guards -- */

static int refuse_change(lua_State *L)
{
    return luaL_error(L, "Attempt to modify a readonly table");
}

/* Pushes the table behind a guard; false, and nothing is pushed: it is not a guard. */
static bool push_guarded(lua_State *L, int index)
{
    if (!lua_istable(L, index) || !lua_getmetatable(L, index))
        return false;
    lua_pushlightuserdata(L, (void *)(uintptr_t)&guard_mark);
    lua_rawget(L, -2);
    lua_remove(L, -2);
    if (lua_istable(L, -1))
        return true;
    lua_pop(L, 1);
    return false;
}

void lua_vm_push_guard(lua_State *L)
{
    lua_newtable(L); /* table guard */
    lua_newtable(L); /* table guard metatable */
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, refuse_change);
    lua_setfield(L, -2, "__newindex");
    lua_pushlightuserdata(L, (void *)(uintptr_t)&guard_mark);
    lua_pushvalue(L, -4);
    lua_rawset(L, -3);
    lua_setmetatable(L, -2);
    lua_remove(L, -2);
}

void lua_vm_refuse_guard(lua_State *L, int index)
{
    if (push_guarded(L, index)) {
        lua_pushliteral(L, "Attempt to modify a readonly table");
        lua_error(L);
    }
}

/* Functions that change their first argument: the original is the upvalue. */
static int change_unless_guarded(lua_State *L)
{
    int count = lua_gettop(L);

    if (count > 0)
        lua_vm_refuse_guard(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, count, LUA_MULTRET);
    return lua_gettop(L);
}

/* Functions that read their first argument. */
static int read_guarded(lua_State *L)
{
    int count = lua_gettop(L);

    if (count > 0 && push_guarded(L, 1))
        lua_replace(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, count, LUA_MULTRET);
    return lua_gettop(L);
}

/* A guard has no metatable to be seen, or another guard. */
static int base_getmetatable(lua_State *L)
{
    luaL_checkany(L, 1);
    if (push_guarded(L, 1)) {
        lua_pop(L, 1);
        if (luaL_getmetafield(L, 1, "__metatable") == 0)
            lua_pushnil(L);
    } else if (lua_getmetatable(L, 1) == 0) {
        lua_pushnil(L);
    } else if (luaL_getmetafield(L, 1, "__metatable") == 0) {
        lua_settop(L, 2);
    }
    return 1;
}

/* pairs: the guarded table must not be the second result, so such tables are walked by our next. */
static int base_pairs(lua_State *L)
{
    if (push_guarded(L, 1)) {
        lua_pushvalue(L, lua_upvalueindex(2)); /* our next */
        lua_pushvalue(L, 1);
        lua_pushnil(L);
        return 3;
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1)); /* the original next, which loops know */
    lua_insert(L, 1);
    lua_pushnil(L);
    return 3;
}

/* ----------------------------------------------------------------------------------- functions of our own make -- */

static int load_text(lua_State *L, struct slice source, const char *name)
{
    struct lua_vm *vm = lua_vm_of(L);

    if (lua_vm_compile(L, source, name, false)) {
        if (vm->environment != 0) {
            lua_rawgeti(L, LUA_REGISTRYINDEX, vm->environment);
            lua_setfenv(L, -2);
        }
        return 1;
    }
    lua_vm_look(L, vm, 1); /* it may be that the compiler was to end */
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

static int base_loadstring(lua_State *L)
{
    struct slice source;
    const char *name;

    source.data = luaL_checklstring(L, 1, &source.size);
    name = luaL_optstring(L, 2, source.data);
    return load_text(L, source, name);
}

static int base_load(lua_State *L)
{
    const char *name = luaL_optstring(L, 2, "=(load)");
    struct lua_bytes bytes;
    struct lua_vm *vm;

    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 2);
    vm = lua_vm_enter(L);
    lua_bytes_init(&bytes, L);
    for (;;) {
        size_t size;
        const char *piece;

        lua_pushvalue(L, 1);
        lua_call(L, 0, 1);
        if (lua_isnil(L, -1))
            break;
        if (!lua_isstring(L, -1))
            return luaL_error(L, "reader function must return a string");
        piece = lua_tolstring(L, -1, &size);
        if (size == 0)
            break;
        lua_bytes_append(&bytes, piece, size);
        lua_vm_look(L, vm, size);
        lua_pop(L, 1);
    }
    vm->depth--;
    return load_text(L, slice_make(bytes.data, bytes.size), name);
}

/* A script may look at its memory and ask for a collection, but not change how the state collects. */
static int base_collectgarbage(lua_State *L)
{
    static const char *const words[] = {"collect", "count", "step", "stop", "restart", "setpause", "setstepmul", NULL};

    switch (luaL_checkoption(L, 1, "collect", words)) {
    case 0:
        lua_pushinteger(L, lua_gc(L, LUA_GCCOLLECT, 0));
        break;
    case 1:
        lua_pushnumber(L, lua_gc(L, LUA_GCCOUNT, 0) + lua_gc(L, LUA_GCCOUNTB, 0) / 1024.0);
        break;
    case 2:
        lua_pushboolean(L, lua_gc(L, LUA_GCSTEP, 0));
        break;
    default:
        lua_pushinteger(L, 0);
    }
    return 1;
}

static int base_missing(lua_State *L)
{
    if (!lua_isstring(L, 2))
        return luaL_error(L, "Second argument to luaProtectedTableError must be a string or number");
    return luaL_error(L, "Script attempted to access nonexistent global variable '%s'", lua_tostring(L, 2));
}

/* The sequence of POSIX' 48-bit generator, so that a script with a seed gets the numbers that it gets in Redis. */
static int math_random(lua_State *L)
{
    struct lua_vm *vm = lua_vm_of(L);
    double unit = (double)(nrand48(vm->random) % INT32_MAX) / INT32_MAX, low = 1, high;

    switch (lua_gettop(L)) {
    case 0:
        lua_pushnumber(L, unit);
        return 1;
    case 1:
        high = trunc(luaL_checknumber(L, 1));
        luaL_argcheck(L, high >= 1, 1, "interval is empty");
        break;
    case 2:
        low = trunc(luaL_checknumber(L, 1));
        high = trunc(luaL_checknumber(L, 2));
        luaL_argcheck(L, low <= high, 2, "interval is empty");
        break;
    default:
        return luaL_error(L, "wrong number of arguments");
    }
    lua_pushnumber(L, floor(unit * (high - low + 1)) + low);
    return 1;
}

static int math_randomseed(lua_State *L)
{
    struct lua_vm *vm = lua_vm_of(L);
    double seed = luaL_checknumber(L, 1);
    uint32_t bits = seed >= -9.2e18 && seed <= 9.2e18 ? (uint32_t)(int64_t)seed : 0;

    vm->random[0] = 0x330e;
    vm->random[1] = (unsigned short)bits;
    vm->random[2] = (unsigned short)(bits >> 16);
    vm->random_is_set = true;
    return 0;
}

static int table_setn(lua_State *L)
{
    return luaL_error(L, "'setn' is obsolete");
}

static int os_clock(lua_State *L)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    lua_pushnumber(L, (double)now.tv_sec + (double)now.tv_nsec / 1e9);
    return 1;
}

/* The argument's lower 32 bits, as bit.tobit (the upvalue) takes them. */
static int32_t bits_of(lua_State *L, int argument)
{
    int32_t bits;

    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, argument);
    lua_call(L, 1, 1);
    bits = (int32_t)lua_tonumber(L, -1);
    lua_pop(L, 1);
    return bits;
}

/* Digits of the lower 32 bits: as many as asked for, in capitals if that is negative; 8 unless asked for. */
static int bit_tohex(lua_State *L)
{
    int64_t wanted = lua_isnone(L, 2) ? 8 : bits_of(L, 2);
    bool capitals = wanted < 0;
    int count = (int)MIN(capitals ? -wanted : wanted, INT64_C(8));
    char digits[8];
    uint32_t bits = (uint32_t)bits_of(L, 1);

    for (int i = count; i-- > 0; bits >>= 4)
        digits[i] = (capitals ? "0123456789ABCDEF" : "0123456789abcdef")[bits & 15];
    lua_pushlstring(L, digits, (size_t)count);
    return 1;
}

/* ---------------------------------------------------------------------------------------------------- compiling -- */

/* Where a text comes from, as messages say it: its first line if it has no name of its own. */
static void describe_chunk(const char *name, char *text, size_t size)
{
    size_t length;

    if (*name == '@' || *name == '=') {
        snprintf(text, size, "%.*s", NAME_BYTES_MOST, name + 1);
        return;
    }
    length = strcspn(name, "\r\n");
    snprintf(text, size, "[string \"%.*s%s\"]", (int)MIN(length, (size_t)40), name,
             name[length] != '\0' || length > 40 ? "..." : "");
}

/* In pieces, since the compiler may take its time. */
static const char *read_piece(lua_State *L, void *context, size_t *size)
{
    struct slice *unread = context;
    const char *piece = unread->data;

    *size = MIN(unread->size, (size_t)PIECE_BYTES);
    lua_vm_look(L, lua_vm_of(L), *size);
    *unread = slice_skip(*unread, *size);
    return *size != 0 ? piece : NULL;
}

bool lua_vm_compile(lua_State *L, struct slice source, const char *chunk_name, bool patch_returns)
{
    struct buffer prepared = {0};
    struct slice number = SLICE_EMPTY, unread;
    unsigned line = 0;
    char where[NAME_BYTES_MOST + 32];
    int status, top;

    if (source.size != 0 && source.data[0] == LUA_SIGNATURE[0]) {
        lua_pushliteral(L, "attempt to load a binary chunk, which is not allowed");
        return false;
    }
    describe_chunk(chunk_name, where, sizeof(where));
    if (source.size != 0 && source.data[0] == '#') { /* LuaJIT would skip the line */
        lua_pushfstring(L, "%s:1: unexpected symbol near '#'", where);
        return false;
    }
    if (!lua_source_prepare(source, patch_returns, &prepared, &line, &number)) {
        buffer_fini(&prepared);
        lua_pushfstring(L, "%s:%d: malformed number near '", where, (int)line);
        lua_pushlstring(L, number.data, MIN(number.size, (size_t)NAME_BYTES_MOST));
        lua_pushliteral(L, "'");
        lua_concat(L, 3);
        return false;
    }
    unread = buffer_slice(&prepared);
    top = lua_gettop(L);
    status = lua_loadx(L, read_piece, &unread, chunk_name, "t");
    assert(lua_gettop(L) == top + 1);
    buffer_fini(&prepared);
    return status == 0;
}

/* ------------------------------------------------------------------------------------------------------ looking -- */

struct lua_vm *lua_vm_enter(lua_State *L)
{
    struct lua_vm *vm = lua_vm_of(L);

    lua_vm_look(L, vm, 1);
    assert(vm->depth >= 0);
    if (vm->depth >= LUA_VM_CALLS_MOST)
        luaL_error(L, "C stack overflow");
    vm->depth++;
    return vm;
}

void lua_vm_look_up(lua_State *L, struct lua_vm *vm)
{
    vm->patience = LUA_VM_PATIENCE;
    vm->is_rung = 0;
    if (vm->look != NULL)
        vm->look(L);
}

/* ----------------------------------------------------------------------------------------------------- building -- */

/* The functions of the standard libraries that scripts may use. Some get a wrapper below. */
static const struct {
    const char *library; /* NULL: of the globals */
    const char *names;
} allowed[] = {
    {NULL, "assert error gcinfo ipairs rawequal select tonumber tostring type unpack _VERSION"},
    {LUA_STRLIBNAME, "byte char len lower rep reverse sub upper"},
    {LUA_TABLIBNAME, "concat foreach foreachi getn maxn remove"},
    {LUA_MATHLIBNAME, "abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min "
                      "modf pi pow rad sin sinh sqrt tan tanh"},
    {LUA_COLIBNAME, "create running status yield"},
    {LUA_BITLIBNAME, "arshift band bnot bor bswap bxor lshift rol ror rshift tobit"},
};

/* Copies the names from the table at the top into the one below it. */
static void copy_allowed(lua_State *L, const char *names)
{
    while (*names != '\0') {
        size_t size = strcspn(names, " ");

        lua_pushlstring(L, names, size);
        lua_pushvalue(L, -1);
        lua_rawget(L, -3);
        lua_rawset(L, -4);
        names += size + (names[size] == ' ');
    }
}

/* The function `from` of the table at `source`, with a wrapper around it, becomes `name` of the table at the top. */
static void wrap(lua_State *L, int source, const char *from, lua_CFunction wrapper, const char *name)
{
    lua_getfield(L, source, from);
    lua_pushcclosure(L, wrapper, 1);
    lua_setfield(L, -2, name);
}

static void set_function(lua_State *L, const char *name, lua_CFunction function)
{
    lua_pushcfunction(L, function);
    lua_setfield(L, -2, name);
}

/* The globals at the top get their functions; the true ones are at `source`. */
static void add_base(lua_State *L, int source)
{
    static const char *const changers[] = {"rawset", "setmetatable"};
    static const char *const readers[] = {"rawget", "next"};

    for (size_t i = 0; i < countof(changers); i++)
        wrap(L, source, changers[i], change_unless_guarded, changers[i]);
    for (size_t i = 0; i < countof(readers); i++)
        wrap(L, source, readers[i], read_guarded, readers[i]);
    lua_getfield(L, source, "next");
    lua_getfield(L, -2, "next");
    lua_pushcclosure(L, base_pairs, 2);
    lua_setfield(L, -2, "pairs");
    set_function(L, "getmetatable", base_getmetatable);
    lua_calls_add_base(L);
    set_function(L, "load", base_load);
    set_function(L, "loadstring", base_loadstring);
    set_function(L, "collectgarbage", base_collectgarbage);
}

/* Adds our own functions to the library at the top; the original one is at `source`. */
static void add_own(lua_State *L, int source, const char *library)
{
    if (strcmp(library, LUA_STRLIBNAME) == 0) {
        lua_calls_add_string(L, source);
        lua_pattern_add(L);
    } else if (strcmp(library, LUA_TABLIBNAME) == 0) {
        lua_calls_add_table(L, source);
        set_function(L, "setn", table_setn);
    } else if (strcmp(library, LUA_COLIBNAME) == 0) {
        lua_calls_add_coroutine(L, source);
    } else if (strcmp(library, LUA_MATHLIBNAME) == 0) {
        lua_getfield(L, source, "fmod");
        lua_setfield(L, -2, "mod");
        set_function(L, "random", math_random);
        set_function(L, "randomseed", math_randomseed);
    } else if (strcmp(library, LUA_BITLIBNAME) == 0) {
        wrap(L, source, "tobit", bit_tohex, "tohex");
    }
}

void lua_vm_set_library(struct lua_vm *vm, const char *name)
{
    lua_State *L = vm->L;
    const int top = lua_gettop(L);

    assert(lua_istable(L, -1));
    lua_vm_push_guard(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->globals);
    lua_insert(L, -2);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
    assert(lua_gettop(L) == top - 1);
}

static void open_standard(lua_State *L)
{
    static const luaL_Reg libraries[] = {{"", luaopen_base},
                                         {LUA_STRLIBNAME, luaopen_string},
                                         {LUA_TABLIBNAME, luaopen_table},
                                         {LUA_MATHLIBNAME, luaopen_math},
                                         {LUA_BITLIBNAME, luaopen_bit}};

    for (size_t i = 0; i < countof(libraries); i++) {
        lua_pushcfunction(L, libraries[i].func);
        lua_pushstring(L, libraries[i].name);
        lua_call(L, 1, 0);
    }
}

/* Methods of strings are found in the guarded library, and what getmetatable says of strings is a guard. */
static void guard_strings(struct lua_vm *vm)
{
    lua_State *L = vm->L;

    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->globals);
    lua_getfield(L, -1, LUA_STRLIBNAME);
    lua_setfield(L, -3, "__index");
    lua_pop(L, 1);
    lua_newtable(L); /* the visible part of it */
    lua_getfield(L, -2, "__index");
    lua_setfield(L, -2, "__index");
    lua_vm_push_guard(L);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 2);
}

void lua_vm_refuse_missing(lua_State *L, int index)
{
    lua_newtable(L);
    set_function(L, "__index", base_missing);
    lua_setmetatable(L, index);
}

void lua_vm_show_metatable(lua_State *L)
{
    lua_getmetatable(L, -1);
    lua_newtable(L);
    set_function(L, "__index", base_missing);
    lua_vm_push_guard(L);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

/* The globals of the state, and so of all that is compiled from now on, become the guard. */
static void guard_globals(struct lua_vm *vm)
{
    lua_State *L = vm->L;

    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->globals);
    lua_vm_refuse_missing(L, lua_gettop(L));
    lua_pushvalue(L, -1);
    lua_vm_push_guard(L); /* globals guard */
    lua_vm_show_metatable(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "_G");
    lua_replace(L, LUA_GLOBALSINDEX);
    lua_pop(L, 1);
}

static void build_globals(struct lua_vm *vm)
{
    lua_State *L = vm->L;
    int source;

    lua_newtable(L);
    vm->globals = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, LUA_GLOBALSINDEX);
    source = lua_gettop(L);
    for (size_t i = 0; i < countof(allowed); i++) {
        if (allowed[i].library == NULL) {
            lua_rawgeti(L, LUA_REGISTRYINDEX, vm->globals);
            lua_pushvalue(L, source);
            copy_allowed(L, allowed[i].names);
            lua_pop(L, 1);
            add_base(L, source);
            lua_pop(L, 1);
            continue;
        }
        lua_newtable(L);
        lua_getfield(L, source, allowed[i].library);
        copy_allowed(L, allowed[i].names);
        lua_insert(L, -2); /* true ours */
        add_own(L, source + 1, allowed[i].library);
        lua_vm_set_library(vm, allowed[i].library);
        lua_pop(L, 1);
    }
    lua_newtable(L);
    set_function(L, "clock", os_clock);
    lua_vm_set_library(vm, "os");
    lua_pop(L, 1);
}

static int collect(lua_State *L)
{
    (void)lua_gc(L, LUA_GCCOLLECT, 0);
    return 0;
}

struct build {
    struct lua_vm *vm;
    void (*open)(struct lua_vm *vm);
};

static int build(lua_State *L)
{
    struct build *build = lua_touserdata(L, 1);
    struct lua_vm *vm = build->vm;

    lua_settop(L, 0);
    lua_pushcfunction(L, collect);
    vm->collect = luaL_ref(L, LUA_REGISTRYINDEX);
    open_standard(L);
    build_globals(vm);
    lua_cjson_open(L, &vm->cjson);
    lua_vm_set_library(vm, "cjson");
    lua_cmsgpack_open(L);
    lua_vm_set_library(vm, "cmsgpack");
    lua_struct_open(L);
    lua_vm_set_library(vm, "struct");
    guard_strings(vm);
    if (build->open != NULL)
        build->open(vm);
    guard_globals(vm);
    assert(lua_gettop(L) == 0);
    return 0;
}

/* An error outside of protected mode: a mistake of ours. */
static int panicked(lua_State *L)
{
    const char *text = lua_tostring(L, -1);

    panic("Lua: %s", text != NULL ? text : "unknown error");
}

struct lua_vm *lua_vm_create(void (*open)(struct lua_vm *vm))
{
    struct lua_vm *vm = mem_alloc_zero(sizeof(*vm));
    struct build context = {vm, open};

    vm->bytes_most = LUA_VM_BYTES_MOST;
    random_secret(vm->random, sizeof(vm->random));
    vm->L = lua_newstate(allocate, vm);
    if (vm->L == NULL) {
        mem_free(vm);
        return NULL;
    }
    lua_atpanic(vm->L, panicked);
    (void)luaJIT_setmode(vm->L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF); /* compiled loops know no hooks */
    if (lua_cpcall(vm->L, build, &context) != 0)
        lua_vm_destroy(&vm);
    return vm;
}

void lua_vm_destroy(struct lua_vm **vm)
{
    if (*vm == NULL)
        return;
    lua_close((*vm)->L); /* bytes may be left: LuaJIT miscounts a stack that could not grow */
    mem_free(*vm);
    *vm = NULL;
}

void lua_vm_before(struct lua_vm *vm)
{
    vm->depth = 0;
    vm->patience = LUA_VM_PATIENCE;
    vm->is_rung = 0;
    if (vm->random_is_set) {
        random_secret(vm->random, sizeof(vm->random));
        vm->random_is_set = false;
    }
}

/* Lua collects in steps as it allocates; only a script that left much behind is cleared up after at once. */
void lua_vm_after(struct lua_vm *vm)
{
    size_t before = SIZE_MAX;

    assert(lua_gettop(vm->L) == 0);
    if (lua_vm_bytes(vm) <= MIN(vm->settled_bytes * 2 + COLLECT_BYTES, vm->bytes_most / 2))
        return;
    while (lua_vm_bytes(vm) < before / 4 * 3) { /* its buffers shrink by half each time */
        before = lua_vm_bytes(vm);
        lua_rawgeti(vm->L, LUA_REGISTRYINDEX, vm->collect);
        if (lua_pcall(vm->L, 0, 0, 0) != 0)
            lua_pop(vm->L, 1);
    }
    vm->settled_bytes = lua_vm_bytes(vm);
}
