/* A Lua state for scripts, shut in: its memory is counted and bounded, what scripts see of the standard libraries can
 * not be changed and reaches neither files, processes, bytecode nor other languages. One thread's.
 *
 * Scripts see their globals through a guard: a table that is empty itself and finds everything in one behind it, so
 * that assigning to it fails. The libraries are guarded the same way. What could reach behind a guard (rawset, next,
 * getmetatable ...) knows guards. */
#pragma once

#include "base/slice.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LUA_VM_BYTES_MOST ((size_t)1 << 30) /* what one state may take; beyond it a script gets "not enough memory" */

struct cjson_options;

struct lua_vm {
    lua_State *L;
    _Atomic size_t bytes;         /* atomic, relaxed: what the state takes; written by the owner */
    size_t bytes_most;
    size_t settled_bytes;         /* owner: after the last full collection */
    int globals;                  /* reference: the table behind the guard */
    int collect;                  /* reference: a function that collects */
    int environment;              /* reference: the globals of what load and loadstring make; 0: those of the state */
    struct cjson_options *cjson;
    unsigned short random[3];     /* the generator of math.random */
    bool random_is_set;           /* by a script: the next one gets another beginning */
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
/* Before and after each script: what one leaves behind must not show in the next. */
void lua_vm_before(struct lua_vm *vm);
void lua_vm_after(struct lua_vm *vm);

static inline size_t lua_vm_bytes(const struct lua_vm *vm)
{
    return atomic_load_explicit(&vm->bytes, memory_order_relaxed);
}
