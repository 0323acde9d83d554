#include "script/lua_calls.h"

#include "base/compiler.h"
#include "script/lua_vm.h"

#include <lauxlib.h>
#include <stdbool.h>

enum { SORT_SHORT = 4096 }; /* so many items are sorted in no time, whatever the order */

/* -------------------------------------------------------------------------------------------------- what catches -- */

/* Errors of commands are tables inside, and texts for who catches them. The error is at the top. */
static void show_error(lua_State *L)
{
    if (!lua_istable(L, -1))
        return;
    lua_pushliteral(L, "err");
    lua_rawget(L, -2);
    if (lua_isstring(L, -1))
        lua_replace(L, -2);
    else
        lua_pop(L, 1);
}

/* The result of lua_pcall from index 1 on becomes that of pcall. */
static int finish_protected(lua_State *L, struct lua_vm *vm, int depth, int status)
{
    vm->depth = depth;
    lua_vm_look(L, vm, 1);
    luaL_checkstack(L, 3, "too many results");
    lua_pushboolean(L, status == 0);
    lua_insert(L, 1);
    if (status != 0)
        show_error(L);
    return lua_gettop(L);
}

static int base_pcall(lua_State *L)
{
    struct lua_vm *vm = lua_vm_enter(L);
    int depth = vm->depth - 1;

    luaL_checkany(L, 1);
    return finish_protected(L, vm, depth, lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0));
}

/* The error handler of xpcall: calls the script's handler (the upvalue), unless the error ends the script. */
static int handle_error(lua_State *L)
{
    struct lua_vm *vm = lua_vm_of(L);

    if (vm->is_ending)
        return 1;
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

static int base_xpcall(lua_State *L)
{
    struct lua_vm *vm = lua_vm_enter(L);
    int depth = vm->depth - 1, status;

    luaL_checkany(L, 2);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, handle_error, 1);
    lua_replace(L, 2); /* function handler arguments */
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_replace(L, 1);
    lua_replace(L, 2); /* handler function arguments */
    status = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 1);
    lua_remove(L, 1);
    vm->depth = depth;
    lua_vm_look(L, vm, 1);
    luaL_checkstack(L, 1, "too many results");
    lua_pushboolean(L, status == 0);
    lua_insert(L, 1);
    return lua_gettop(L);
}

/* ---------------------------------------------------------------------------------------------------- coroutines -- */

/* NULL: it may be resumed. LuaJIT's lua_resume must not be asked: it would cut the stack of one that runs. */
static const char *refusal_to_resume(lua_State *L, lua_State *routine)
{
    lua_Debug frame;

    if (lua_status(routine) == LUA_YIELD)
        return NULL;
    if (lua_status(routine) == 0 && routine == L)
        return "cannot resume running coroutine";
    if (lua_status(routine) == 0 && lua_getstack(routine, 0, &frame) != 0)
        return "cannot resume normal coroutine";
    return lua_status(routine) != 0 || lua_gettop(routine) == 0 ? "cannot resume dead coroutine" : NULL;
}

/* Runs the coroutine on with so many arguments from the top, popped; returns how many results are there instead, or -1
 * and a message. */
static int resume(lua_State *L, lua_State *routine, int argument_count)
{
    struct lua_vm *vm = lua_vm_of(L);
    int depth = vm->depth, status, count;
    const char *refusal = refusal_to_resume(L, routine);

    if (refusal == NULL && depth >= LUA_VM_CALLS_MOST)
        refusal = "C stack overflow";
    if (refusal == NULL && !lua_checkstack(routine, argument_count))
        refusal = "too many arguments to resume";
    if (refusal != NULL) {
        lua_settop(L, -argument_count - 1);
        lua_pushstring(L, refusal);
        return -1;
    }
    lua_xmove(L, routine, argument_count);
    vm->depth++;
    status = lua_resume(routine, argument_count);
    vm->depth = depth;
    lua_vm_look(L, vm, 1);
    if (status != 0 && status != LUA_YIELD) {
        lua_xmove(routine, L, 1);
        return -1;
    }
    count = lua_gettop(routine);
    if (!lua_checkstack(L, count + 1)) {
        lua_settop(routine, 0);
        lua_pushliteral(L, "too many results to resume");
        return -1;
    }
    lua_xmove(routine, L, count);
    return count;
}

static int coroutine_resume(lua_State *L)
{
    lua_State *routine = lua_tothread(L, 1);
    int count;

    luaL_argcheck(L, routine != NULL, 1, "coroutine expected");
    count = resume(L, routine, lua_gettop(L) - 1);
    lua_pushboolean(L, count >= 0);
    lua_insert(L, 2);
    return count >= 0 ? count + 1 : 2;
}

/* The coroutine is the upvalue. */
static int call_wrapped(lua_State *L)
{
    int count = resume(L, lua_tothread(L, lua_upvalueindex(1)), lua_gettop(L));

    if (count >= 0)
        return count;
    if (lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

/* coroutine.create is the upvalue. */
static int coroutine_wrap(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    lua_pushcclosure(L, call_wrapped, 1);
    return 1;
}

/* -------------------------------------------------------------------------------------------------------- tables -- */

/* True if the value at index -2 precedes the value at the top. */
static bool goes_before(lua_State *L, bool by_function)
{
    bool before;

    if (!by_function)
        return lua_lessthan(L, -2, -1) != 0;
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -3);
    lua_pushvalue(L, -3);
    lua_call(L, 2, 1);
    before = lua_toboolean(L, -1) != 0;
    lua_pop(L, 1);
    return before;
}

/* The item at `root` of the table at 1 changes places with its larger child until none is larger. */
static void sift_down(lua_State *L, struct lua_vm *vm, bool by_function, int root, int count)
{
    int child;

    for (; root <= count / 2; root = child) {
        lua_vm_look(L, vm, 1);
        child = root * 2;
        lua_rawgeti(L, 1, child);
        if (child < count) {
            lua_rawgeti(L, 1, child + 1);
            if (goes_before(L, by_function))
                child++;
            lua_settop(L, 2);
            lua_rawgeti(L, 1, child);
        }
        lua_rawgeti(L, 1, root);
        lua_insert(L, -2); /* root child */
        if (!goes_before(L, by_function)) {
            lua_settop(L, 2);
            return;
        }
        lua_rawseti(L, 1, root);
        lua_rawseti(L, 1, child);
    }
}

/* In place, and a table whose comparison fails keeps all its items. */
static void sort_heap(lua_State *L, struct lua_vm *vm, bool by_function, int count)
{
    for (int root = count / 2; root >= 1; root--)
        sift_down(L, vm, by_function, root, count);
    for (int last = count; last > 1; last--) {
        lua_rawgeti(L, 1, 1);
        lua_rawgeti(L, 1, last);
        lua_rawseti(L, 1, 1);
        lua_rawseti(L, 1, last);
        sift_down(L, vm, by_function, 1, last - 1);
    }
}

/* LuaJIT's own function (the upvalue) is quadratic in the worst case. With a comparison function of the script, the
 * hook can end the script, and the order of equal items is that of Lua. */
static int table_sort(lua_State *L)
{
    struct lua_vm *vm = lua_vm_enter(L);
    bool by_function = !lua_isnoneornil(L, 2);
    size_t count;

    luaL_checktype(L, 1, LUA_TTABLE);
    if (by_function)
        luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    count = lua_objlen(L, 1);
    if (count <= SORT_SHORT || (by_function && !lua_iscfunction(L, 2))) {
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_insert(L, 1);
        lua_call(L, 2, 0);
    } else {
        sort_heap(L, vm, by_function, (int)count);
    }
    vm->depth--;
    return 0;
}

/* Moving the items behind the position may take long: a position may be far below the first item. */
static int table_insert(lua_State *L)
{
    struct lua_vm *vm = lua_vm_of(L);
    int end, position;

    lua_vm_refuse_guard(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    end = (int)lua_objlen(L, 1) + 1;
    if (lua_gettop(L) == 2) {
        lua_rawseti(L, 1, end);
        return 0;
    }
    if (lua_gettop(L) != 3)
        return luaL_error(L, "wrong number of arguments to 'insert'");
    position = luaL_checkint(L, 2);
    for (; end > position; end--) {
        lua_vm_look(L, vm, 1);
        lua_rawgeti(L, 1, end - 1);
        lua_rawseti(L, 1, end);
    }
    lua_rawseti(L, 1, position);
    return 0;
}

/* -------------------------------------------------------------------------------------------------------- adding -- */

/* The original (the upvalue) may call a function of the script: __tostring. */
static int call_counted(lua_State *L)
{
    struct lua_vm *vm = lua_vm_enter(L);

    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    vm->depth--;
    return lua_gettop(L);
}

static void add(lua_State *L, const char *name, lua_CFunction function)
{
    lua_pushcfunction(L, function);
    lua_setfield(L, -2, name);
}

static void add_around(lua_State *L, int source, const char *from, lua_CFunction function, const char *name)
{
    lua_getfield(L, source, from);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
}

void lua_calls_add_base(lua_State *L)
{
    add(L, "pcall", base_pcall);
    add(L, "xpcall", base_xpcall);
}

void lua_calls_add_string(lua_State *L, int source)
{
    add_around(L, source, "format", call_counted, "format");
}

void lua_calls_add_table(lua_State *L, int source)
{
    add_around(L, source, "sort", table_sort, "sort");
    add(L, "insert", table_insert);
}

void lua_calls_add_coroutine(lua_State *L, int source)
{
    add(L, "resume", coroutine_resume);
    add_around(L, source, "create", coroutine_wrap, "wrap");
}
