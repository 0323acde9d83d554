/* A Lua state for scripts, in a sandbox. Its memory is counted and limited. Scripts cannot change the standard
 * libraries that they see, and cannot reach files, processes, bytecode or other languages through them. One thread uses
 * a state.
 *
 * No script can occupy the thread for ever: a hook counts instructions of Lua, and C functions that work for long, or
 * call Lua again, call lua_vm_look.
 *
 * Scripts see their globals through a guard: an empty table that reads from a table behind it, so assignments fail. The
 * libraries are guarded in the same way. Functions that could bypass a guard (rawset, next, getmetatable ...) know
 * guards. */
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

#define LUA_VM_BYTES_MOST ((size_t)1 << 30) /* memory limit of one state; beyond it a script gets "not enough memory" */

enum {
    LUA_VM_CALLS_MOST = 200,  /* nested calls of C functions that call Lua; beyond it "C stack overflow" */
    LUA_VM_PATIENCE = 1 << 16 /* work that C does before it calls lua_vm_look; about 100 us */
};

struct cjson_options;

struct lua_vm {
    lua_State *L;
    _Atomic size_t bytes; /* atomic: relaxed; memory of the state; written by the owner */
    size_t bytes_most;
    size_t settled_bytes; /* owner: after the last full collection */
    int globals;          /* reference: the table behind the guard */
    int collect;          /* reference: a function that collects garbage */
    int environment;      /* reference: the globals for functions of load and loadstring; 0: those of the state */
    struct cjson_options *cjson;
    unsigned short random[3];        /* state of math.random */
    bool random_is_set;              /* a script has set it: reset it for the next one */
    int depth;                       /* nested calls of C, over all coroutines that have resumed each other */
    int64_t patience;                /* work that C may do until it checks again */
    bool is_ending;                  /* the script must end: the next check raises an error */
    volatile sig_atomic_t is_rung;   /* set by a signal handler of this thread: check at once */
    volatile sig_atomic_t sets_hook; /* the thread is setting the hook: the signal handler must not */
    void (*look)(lua_State *L);      /* const after creation; NULL: nothing to check. May raise an error */
};

/* NULL: no memory. `open` pushes libraries of the caller (in protected mode) and adds them to the globals with
 * lua_vm_set_library. */
struct lua_vm *lua_vm_create(void (*open)(struct lua_vm *vm));
void lua_vm_destroy(struct lua_vm **vm);
/* Takes the table at the top and shows it to scripts, guarded, under this name. In protected mode. */
void lua_vm_set_library(struct lua_vm *vm, const char *name);
/* Takes the table at the top and pushes a guard for it: an empty table through which it is read. In protected mode. */
void lua_vm_push_guard(lua_State *L);
/* Makes reads of missing fields of the table at `index` raise the error for missing globals. In protected mode. */
void lua_vm_refuse_missing(lua_State *L, int index);
/* The guard at the top is for globals: makes getmetatable(_G) return a table with __index. */
void lua_vm_show_metatable(lua_State *L);
/* Compiles text, never bytecode: pushes a function, or (false) an error message. patch_returns: see lua_source.h. In
 * protected mode. */
bool lua_vm_compile(lua_State *L, struct slice source, const char *chunk_name, bool patch_returns);
void lua_vm_refuse_guard(lua_State *L, int index); /* raises an error if the value is a guard */
/* Call it at the start of a C function that calls Lua, in protected mode: raises an error if there are too many such
 * calls. The function ends with depth--. A function that catches an error restores the old depth. */
struct lua_vm *lua_vm_enter(lua_State *L);
void lua_vm_look_up(lua_State *L, struct lua_vm *vm);
/* Call them before and after each script, so that a script cannot see what an earlier one has left. */
void lua_vm_before(struct lua_vm *vm);
void lua_vm_after(struct lua_vm *vm);

/* Returns the state's struct, which the allocator knows. */
static inline struct lua_vm *lua_vm_of(lua_State *L)
{
    void *vm;

    (void)lua_getallocf(L, &vm);
    return vm;
}

/* Records C work of this cost (about one for each character or comparison), and checks now and then whether the script
 * must end. May raise an error. */
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
