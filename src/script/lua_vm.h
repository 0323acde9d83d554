/* A Lua state for scripts, shut in: its memory is counted and bounded, what scripts see of the standard libraries can
 * not be changed and reaches neither files, processes, bytecode nor other languages. One thread's.
 *
 * No script keeps the thread for ever: instructions of Lua are seen by a hook, and functions of C that work for long,
 * or call Lua again, look up (lua_vm_look).
 *
 * Scripts see their globals through a guard: a table that is empty itself and finds everything in one behind it, so
 * that assigning to it fails. The libraries are guarded the same way. What could reach behind a guard (rawset, next,
 * getmetatable ...) knows guards. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LUA_VM_BYTES_MOST ((size_t)1 << 30) /* what one state may take; beyond it a script gets "not enough memory" */

enum {
    LUA_VM_CALLS_MOST = 200,  /* calls of C that call Lua again, in one another: "C stack overflow" beyond it */
    LUA_VM_PATIENCE = 1 << 16 /* how much work C does before it looks up; some 100 us */
};

struct cjson_options;

struct lua_vm {
    lua_State *L;
    _Atomic size_t bytes; /* atomic, relaxed: what the state takes; written by the owner */
    size_t bytes_most;
    size_t settled_bytes; /* owner: after the last full collection */
    int globals;          /* reference: the table behind the guard */
    int collect;          /* reference: a function that collects */
    int environment;      /* reference: the globals of what load and loadstring make; 0: those of the state */
    struct cjson_options *cjson;
    unsigned short random[3];        /* the generator of math.random */
    bool random_is_set;              /* by a script: the next one gets another beginning */
    int depth;                       /* of calls of C; over all coroutines that have resumed each other */
    int64_t patience;                /* work that C may do until it looks up */
    bool is_ending;                  /* the script is to end: whoever looks raises an error */
    volatile sig_atomic_t is_rung;   /* set from a signal handler of the thread: look up at once */
    volatile sig_atomic_t sets_hook; /* the thread is about it: the handler may not */
    void (*look)(lua_State *L);      /* const after creation; NULL: nothing to see. May raise an error */
};

/* NULL: no memory. `open` pushes libraries of the caller's (in protected mode) and puts them into the globals with
 * lua_vm_set_library. */
struct lua_vm *lua_vm_create(void (*open)(struct lua_vm *vm));
void lua_vm_destroy(struct lua_vm **vm);
/* Takes the table at the top and lets scripts see it, guarded, under this name. In protected mode. */
void lua_vm_set_library(struct lua_vm *vm, const char *name);
/* Takes the table at the top, pushes a guard for it: an empty table through which it can be read. In protected mode. */
void lua_vm_push_guard(lua_State *L);
/* What the table at `index` has not raises the error that scripts know of missing globals. In protected mode. */
void lua_vm_refuse_missing(lua_State *L, int index);
/* The guard at the top stands before globals: getmetatable(_G) is known to be a table with __index. */
void lua_vm_show_metatable(lua_State *L);
/* Compiles text, never bytecode: pushes a function, or (false) a message. patch_returns: see lua_source.h. In
 * protected mode. */
bool lua_vm_compile(lua_State *L, struct slice source, const char *chunk_name, bool patch_returns);
void lua_vm_refuse_guard(lua_State *L, int index); /* raises an error if the value is a guard */
/* A function of C begins that calls Lua, in protected mode: raises an error if there are too many. It ends with
 * depth--; after an error who catches it puts back what depth was. */
struct lua_vm *lua_vm_enter(lua_State *L);
void lua_vm_look_up(lua_State *L, struct lua_vm *vm);
/* Before and after each script: what one leaves behind must not show in the next. */
void lua_vm_before(struct lua_vm *vm);
void lua_vm_after(struct lua_vm *vm);

/* The allocator knows it. */
static inline struct lua_vm *lua_vm_of(lua_State *L)
{
    void *vm;

    (void)lua_getallocf(L, &vm);
    return vm;
}

/* So much has been done by C, about a character or a comparison each: is the script to end? May raise an error. */
static inline void lua_vm_look(lua_State *L, struct lua_vm *vm, size_t cost)
{
    vm->patience -= (int64_t)cost;
    if (UNLIKELY(vm->patience < 0 || vm->is_ending || vm->is_rung != 0))
        lua_vm_look_up(L, vm);
}

static inline size_t lua_vm_bytes(const struct lua_vm *vm)
{
    return atomic_load_explicit(&vm->bytes, memory_order_relaxed);
}
