/* While a library is loaded it sees other globals than its functions do later: `redis` with little more than
 * register_function, and nothing else. Its environment is one guard (lua_vm.h) for all libraries; the table behind it
 * is exchanged before and after loading. */
#include "script/function_host.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "script/lua_values.h"
#include "script/script_api.h"
#include "script/script_host_priv.h"
#include "script/script_watch.h"

#include <stdio.h>

/* A library in this worker's Lua state. */
struct loaded {
    struct library *library;
    struct {
        int *items;
        uint32_t count, capacity;
    } functions; /* references, by index */
};

/* Of the load in progress; this thread's. */
struct loading {
    struct library *library;
    struct loaded *loaded;
    uint64_t started_ms;
    struct slice body;
    struct buffer *error;
};
static _Thread_local struct loading *loading;

bool function_host_is_loading(uint64_t *spent_ms)
{
    if (loading == NULL)
        return false;
    *spent_ms = clock_monotonic_ms() - loading->started_ms;
    return true;
}

/* ------------------------------------------------------------------------------------------------- registering -- */

static int refuse(lua_State *L, const char *text)
{
    lua_values_push_error(L, slice_from_text(text));
    return lua_error(L);
}

struct registration {
    const char *name, *description;
    size_t name_size;
    uint32_t flags;
    int callback; /* index on the stack; 0: none yet */
};

/* The table at the top. */
static void read_flags(lua_State *L, struct registration *registration)
{
    for (int i = 1;; i++) {
        unsigned flag = 0;
        const char *text;

        lua_rawgeti(L, -1, i);
        if (lua_isnil(L, -1))
            break;
        text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
        while (script_flag_name(flag) != NULL && strcmp(script_flag_name(flag), text) != 0)
            flag++;
        if (script_flag_name(flag) == NULL)
            refuse(L, "ERR unknown flag given");
        registration->flags |= 1U << flag;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* One of the named arguments: the value is at the top, and stays on the stack. */
static void read_named(lua_State *L, struct registration *registration, const char *key)
{
    if (strcmp(key, "function_name") == 0) {
        if (!lua_isstring(L, -1))
            refuse(L, "ERR function_name argument given to redis.register_function must be a string");
        registration->name = lua_tolstring(L, -1, &registration->name_size);
    } else if (strcmp(key, "description") == 0) {
        if (!lua_isstring(L, -1))
            refuse(L, "ERR description argument given to redis.register_function must be a string");
        registration->description = lua_tostring(L, -1);
    } else if (strcmp(key, "callback") == 0) {
        if (!lua_isfunction(L, -1))
            refuse(L, "ERR callback argument given to redis.register_function must be a function");
        registration->callback = lua_gettop(L);
    } else if (strcmp(key, "flags") == 0) {
        if (!lua_istable(L, -1))
            refuse(L, "ERR flags argument to redis.register_function must be a table representing function flags");
        read_flags(L, registration);
    } else {
        refuse(L, "ERR unknown argument given to redis.register_function");
    }
}

static void read_table(lua_State *L, struct registration *registration)
{
    if (!lua_istable(L, 1))
        refuse(L, "ERR calling redis.register_function with a single argument is only applicable to Lua table "
                  "(representing named arguments).");
    lua_pushnil(L);
    while (lua_next(L, 1) != 0) {
        luaL_checkstack(L, 8, "too many arguments");
        if (!lua_isstring(L, -2))
            refuse(L, "ERR named argument key given to redis.register_function is not a string");
        lua_pushvalue(L, -2); /* the key, which next needs unchanged */
        lua_insert(L, -2);
        lua_pushvalue(L, -2);
        lua_insert(L, -2); /* key key' key'' value */
        read_named(L, registration, lua_tostring(L, -2));
        lua_pushvalue(L, -3);
    }
}

static int register_function(lua_State *L)
{
    struct registration registration = {0};
    int count = lua_gettop(L), reference;

    if (loading == NULL)
        return refuse(L, "ERR redis.register_function can only be called on FUNCTION LOAD command");
    if (count < 1 || count > 2)
        return refuse(L, "ERR wrong number of arguments to redis.register_function");
    if (count == 1) {
        read_table(L, &registration);
        if (registration.name == NULL)
            return refuse(L, "ERR redis.register_function must get a function name argument");
        if (registration.callback == 0)
            return refuse(L, "ERR redis.register_function must get a callback argument");
    } else {
        if (!lua_isstring(L, 1))
            return refuse(L, "ERR first argument to redis.register_function must be a string");
        if (!lua_isfunction(L, 2))
            return refuse(L, "ERR second argument to redis.register_function must be a function");
        registration.name = lua_tolstring(L, 1, &registration.name_size);
        registration.callback = 2;
    }
    if (!library_name_is_fine(slice_make(registration.name, registration.name_size)))
        return refuse(L, "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least "
                         "one character long");
    lua_pushvalue(L, registration.callback);
    reference = luaL_ref(L, LUA_REGISTRYINDEX);
    if (!library_add_function(loading->library, slice_make(registration.name, registration.name_size),
                              registration.description, registration.flags)) {
        luaL_unref(L, LUA_REGISTRYINDEX, reference);
        return refuse(L, "ERR Function already exists in the library");
    }
    *ARRAY_PUSH(&loading->loaded->functions) = reference;
    return 0;
}

/* ----------------------------------------------------------------------------------------------- environments -- */

/* The globals of functions: those of scripts, with a `redis` of their own and without KEYS and ARGV. */
static int open_functions(lua_State *L)
{
    struct script_host *host = lua_touserdata(L, 1);
    struct lua_vm *vm = host->vm;

    lua_settop(L, 0);
    lua_newtable(L); /* 1: the globals of functions */
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->globals);
    lua_pushnil(L);
    while (lua_next(L, -2) != 0) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, 1);
    }
    lua_pop(L, 1);
    lua_pushnil(L);
    lua_setfield(L, 1, "KEYS");
    lua_pushnil(L);
    lua_setfield(L, 1, "ARGV");
    lua_newtable(L); /* 2: those of loading */
    lua_vm_refuse_missing(L, 1);
    lua_vm_refuse_missing(L, 2);
    script_api_push(L, SCRIPT_API_FUNCTIONS);
    lua_vm_push_guard(L);
    script_api_set(L, 1);
    script_api_push(L, SCRIPT_API_LOADING);
    lua_pushcfunction(L, register_function);
    lua_setfield(L, -2, "register_function");
    lua_vm_refuse_missing(L, lua_gettop(L));
    lua_vm_push_guard(L);
    script_api_set(L, 2);
    lua_pushvalue(L, 1);
    lua_vm_push_guard(L); /* 3: the environment */
    lua_vm_show_metatable(L);
    lua_pushvalue(L, 3);
    lua_setfield(L, 1, "_G");
    lua_getmetatable(L, 3);
    host->functions.metatable = luaL_ref(L, LUA_REGISTRYINDEX);
    host->functions.environment = luaL_ref(L, LUA_REGISTRYINDEX);
    host->functions.loading = luaL_ref(L, LUA_REGISTRYINDEX);
    host->functions.calling = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

static bool open_once(struct script_host *host)
{
    if (host->functions.environment == 0 && lua_cpcall(host->vm->L, open_functions, host) != 0)
        lua_pop(host->vm->L, 1);
    return host->functions.environment != 0;
}

/* Sets the table behind the guard. */
static void show_globals(lua_State *L, const struct script_host *host, int reference)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, host->functions.metatable);
    lua_rawgeti(L, LUA_REGISTRYINDEX, reference);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

/* ------------------------------------------------------------------------------------------------------ loading -- */

static void loaded_destroy(struct script_host *host, struct loaded *loaded)
{
    assert(loading == NULL);
    for (uint32_t i = 0; i < loaded->functions.count; i++)
        luaL_unref(host->vm->L, LUA_REGISTRYINDEX, loaded->functions.items[i]);
    ARRAY_FINI(&loaded->functions);
    library_release(&loaded->library);
    mem_free(loaded);
}

void function_host_fini(struct script_host *host)
{
    for (uint32_t i = 0; i < host->functions.libraries.count; i++)
        loaded_destroy(host, host->functions.libraries.items[i]);
    ARRAY_FINI(&host->functions.libraries);
}

static void take_error(lua_State *L, struct buffer *error, const char *prefix)
{
    struct slice text = SLICE_EMPTY;

    buffer_append_text(error, prefix);
    if (lua_istable(L, -1)) {
        lua_pushliteral(L, "err");
        lua_rawget(L, -2);
    } else {
        buffer_append_text(error, "ERR ");
        lua_pushvalue(L, -1);
    }
    if (lua_isstring(L, -1))
        text.data = lua_tolstring(L, -1, &text.size);
    buffer_append(error, text.data != NULL ? text.data : "unknown error", text.data != NULL ? text.size : 13);
    lua_pop(L, 2);
}

static int load_protected(lua_State *L)
{
    struct script_host *host = lua_touserdata(L, 1);
    size_t size;
    const char *text;
    int status;

    if (!lua_vm_compile(L, loading->body, "@user_function", false)) {
        text = lua_tolstring(L, -1, &size);
        buffer_append_text(loading->error, "ERR Error compiling function: ");
        buffer_append(loading->error, text != NULL ? text : "", text != NULL ? size : 0);
        return 0;
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, host->functions.environment);
    lua_setfenv(L, -2);
    show_globals(L, host, host->functions.loading);
    status = lua_pcall(L, 0, 0, 0);
    show_globals(L, host, host->functions.calling);
    if (status != 0)
        take_error(L, loading->error, "ERR Error registering functions: ");
    return 0;
}

/* NULL: it fails, or registers nothing; `error` says why. */
static struct loaded *load(struct script_host *host, struct slice code, struct buffer *error)
{
    struct loading now = {.error = error, .started_ms = clock_monotonic_ms()};
    struct loaded *loaded;
    char *name = NULL;
    const int top = lua_gettop(host->vm->L);

    script_host_assert_here(host);
    assert(loading == NULL);
    if (!library_read_head(code, &name, &now.body, error))
        return NULL;
    if (!open_once(host)) {
        buffer_append_text(error, "ERR not enough memory for functions");
        mem_free(name);
        return NULL;
    }
    loaded = mem_alloc_zero(sizeof(*loaded));
    loaded->library = now.library = library_create(slice_from_text(name), code);
    now.loaded = loaded;
    mem_free(name);
    loading = &now;
    if (host->worker != NULL)
        script_watch_begin(host->worker);
    lua_vm_before(host->vm);
    if (lua_cpcall(host->vm->L, load_protected, host) != 0)
        take_error(host->vm->L, error, "ERR Error registering functions: ");
    if (host->worker != NULL)
        script_watch_end(host->worker);
    loading = NULL;
    assert(lua_gettop(host->vm->L) == top);
    if (host->vm->is_ending)
        script_api_watch(host->vm->L);
    if (error->size == 0 && loaded->functions.count == 0)
        buffer_append_text(error, "ERR No functions registered");
    if (error->size == 0)
        return loaded;
    loaded_destroy(host, loaded);
    return NULL;
}

/* Forgets libraries that are in the set no more. */
static void drop_old(struct script_host *host)
{
    for (uint32_t i = 0; i < host->functions.libraries.count;) {
        if (library_is_dropped(host->functions.libraries.items[i]->library)) {
            loaded_destroy(host, host->functions.libraries.items[i]);
            host->functions.libraries.items[i] = host->functions.libraries.items[--host->functions.libraries.count];
        } else {
            i++;
        }
    }
}

struct library *function_host_load(struct script_host *host, struct slice code, struct buffer *error)
{
    struct loaded *loaded = load(host, code, error);
    struct library *library;

    if (loaded == NULL)
        return NULL;
    /* It is loaded again when one of its functions is called: it may never get into the set. */
    library = loaded->library;
    atomic_fetch_add_explicit(&library->references, 1, memory_order_relaxed);
    loaded_destroy(host, loaded);
    return library;
}

bool function_host_load_source(struct slice source, bool replaces, char *error, size_t error_size)
{
    struct script_host *own = NULL, *host = script_host_of_thread();
    struct library *library = NULL;
    struct buffer text = {0};
    bool fine = false;

    gate_assert_alone();
    if (host == NULL)
        host = own = script_host_open_alone();
    if (host != NULL)
        library = function_host_load(host, source, &text);
    else
        buffer_append_text(&text, "ERR not enough memory for functions");
    if (library != NULL)
        fine = functions_add(&library, 1, replaces ? FUNCTIONS_REPLACE : FUNCTIONS_APPEND, true, &text);
    if (!fine)
        snprintf(error, error_size, "%.*s", (int)text.size - 4, text.data + 4); /* without "ERR " */
    library_release(&library);
    script_host_close_alone(&own);
    buffer_fini(&text);
    return fine;
}

static struct loaded *find_loaded(struct script_host *host, struct library *library, struct buffer *error)
{
    struct loaded *loaded;

    for (uint32_t i = 0; i < host->functions.libraries.count; i++) {
        if (host->functions.libraries.items[i]->library == library)
            return host->functions.libraries.items[i];
    }
    drop_old(host);
    loaded = load(host, library->code, error);
    if (loaded == NULL)
        return NULL;
    if (loaded->functions.count != library->functions.count) { /* loading sees nothing that could differ */
        buffer_append_text(error, "ERR The library registers different functions each time it is loaded");
        loaded_destroy(host, loaded);
        return NULL;
    }
    library_release(&loaded->library);
    loaded->library = library;
    atomic_fetch_add_explicit(&library->references, 1, memory_order_relaxed);
    *ARRAY_PUSH(&host->functions.libraries) = loaded;
    return loaded;
}

void function_host_call(struct script_host *host, struct request *request, struct function *function, bool read_only,
                        uint32_t key_count)
{
    struct buffer error = {0};
    struct loaded *loaded = find_loaded(host, function->library, &error);
    struct script_run run = {.request = request,
                             .name = function->name,
                             .place = "user_function",
                             .flags = function->flags,
                             .read_only = read_only,
                             .is_function = true,
                             .keys = request->args + 3,
                             .key_count = key_count,
                             .args = request->args + 3 + key_count,
                             .arg_count = request->arg_count - 3 - key_count};

    script_host_assert_here(host);
    if (loaded != NULL) {
        assert(function->index < loaded->functions.count);
        run.function = loaded->functions.items[function->index];
        script_host_run(host, &run);
    } else {
        reply_errorf(request, "%.*s", (int)error.size, error.data);
    }
    buffer_fini(&error);
}
