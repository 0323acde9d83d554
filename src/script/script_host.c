#include "script/script_host.h"

#include "base/assert.h"
#include "base/gate.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/tick.h"
#include "script/lua_values.h"
#include "script/script_api.h"
#include "script/script_busy.h"
#include "script/script_host_priv.h"
#include "script/script_watch.h"
#include "server/core/client.h"
#include "server/core/server.h"
#include "server/durable/child.h"
#include "server/run/dispatch.h"
#include "server/run/command_check.h"

#include <openssl/evp.h>
#include <stdio.h>

enum { COMPILED_MOST = 1000 };

static _Atomic(struct script_host *) hosts[WORKERS_MOST]; /* atomic: set once by the worker; read for INFO */
/* So that no context counts as lost when its thread has gone: of the workers and the loader. Atomic: set once. */
static _Atomic(EVP_MD_CTX *) sha_contexts[WORKERS_MOST + 1];
static _Atomic unsigned sha_context_count;    /* atomic, relaxed */
static _Thread_local EVP_MD_CTX *sha_context; /* the thread's own of them */
static _Thread_local struct script_host *here;

/* ----------------------------------------------------------------------------------------------------- the host -- */

struct lua_vm *script_host_vm(struct script_host *host)
{
    return host->vm;
}

struct script_run *script_host_running(void)
{
    return here != NULL ? here->run : NULL;
}

struct script_host *script_host_of_thread(void)
{
    return here;
}

uint64_t script_vms_bytes(void)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < WORKERS_MOST; i++) {
        struct script_host *host = atomic_load_explicit(&hosts[i], memory_order_acquire);

        bytes += host != NULL ? lua_vm_bytes(host->vm) : 0;
    }
    return bytes;
}

static int call_script(lua_State *L);
static int note_error(lua_State *L);
static int describe_error(lua_State *L);

static void open_api(struct lua_vm *vm)
{
    script_api_open(vm);
    lua_newtable(vm->L);
    lua_rawgeti(vm->L, LUA_REGISTRYINDEX, vm->globals);
    lua_pushvalue(vm->L, -2);
    lua_setfield(vm->L, -2, "KEYS");
    lua_pushvalue(vm->L, -2);
    lua_setfield(vm->L, -2, "ARGV");
    lua_pop(vm->L, 2);
}

/* Prepares everything that each run needs, so that a run needs no memory outside of protected mode. */
static int anchor(lua_State *L)
{
    struct script_host *host = lua_touserdata(L, 1);

    lua_pushcfunction(L, call_script);
    host->call_script = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushcfunction(L, note_error);
    host->note_error = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushcfunction(L, describe_error);
    host->describe_error = luaL_ref(L, LUA_REGISTRYINDEX);
    host->vm->look = script_api_look;
    script_api_watch(L);
    return 0;
}

static struct script_host *create(struct worker *worker)
{
    struct script_host *host = mem_alloc_zero(sizeof(*host));

    host->worker = worker;
    host->vm = lua_vm_create(open_api);
    if (host->vm == NULL || lua_cpcall(host->vm->L, anchor, host) != 0) {
        lua_vm_destroy(&host->vm);
        mem_free(host);
        return NULL;
    }
    return host;
}

struct script_host *script_host_here(struct worker *worker)
{
    worker_assert_self(worker);
    assert(here == NULL || here->worker == worker);
    if (LIKELY(here != NULL))
        return here;
    here = create(worker);
    if (here != NULL && worker->index < WORKERS_MOST) /* else it will not last: script_host_leave */
        atomic_store_explicit(&hosts[worker->index], here, memory_order_release);
    return here;
}

struct compiled {
    struct script *script;
    int function; /* reference */
};

static uint64_t compiled_hash(const void *item)
{
    return ((const struct compiled *)item)->script->hash;
}

static bool compiled_has_sha(const void *item, const void *key)
{
    return memcmp(((const struct compiled *)item)->script->sha, key, SCRIPT_SHA_DIGITS) == 0;
}

static void compiled_free(void *item, void *context)
{
    struct compiled *compiled = item;
    struct script_host *host = context;

    if (host->last == compiled)
        host->last = NULL;
    luaL_unref(host->vm->L, LUA_REGISTRYINDEX, compiled->function);
    script_release(&compiled->script);
    mem_free(compiled);
}

static void destroy(struct script_host *host)
{
    assert(host->run == NULL && host->debug == NULL);
    table_clear(&host->compiled, compiled_free, host);
    function_host_fini(host);
    lua_vm_destroy(&host->vm);
    script_calls_fini(&host->calls);
    mem_free(host);
}

void script_host_teardown(void)
{
    gate_assert_main_alone();
    for (unsigned i = 0; i < WORKERS_MOST; i++) {
        struct script_host *host = atomic_load_explicit(&hosts[i], memory_order_acquire);

        if (host == NULL)
            continue;
        atomic_store_explicit(&hosts[i], NULL, memory_order_release);
        destroy(host);
    }
    sha_context = NULL;
    here = NULL;
}

void script_host_leave(void)
{
    assert(here == NULL || here->worker->index == WORKER_OF_LOADER);
    if (here != NULL)
        destroy(here);
    here = NULL;
}

struct script_host *script_host_open_alone(void)
{
    assert(here == NULL);
    here = create(NULL);
    return here;
}

void script_host_close_alone(struct script_host **host)
{
    if (*host == NULL)
        return;
    script_host_assert_here(*host);
    destroy(*host);
    *host = here = NULL;
}

/* ---------------------------------------------------------------------------------------------------- compiling -- */

/* A thread makes one and keeps it: asking OpenSSL for an algorithm costs more than a short text. */
static EVP_MD_CTX *sha_context_create(void)
{
    EVP_MD *algorithm = EVP_MD_fetch(NULL, "SHA1", NULL);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned index = atomic_fetch_add_explicit(&sha_context_count, 1, memory_order_relaxed);

    if (context == NULL || EVP_DigestInit_ex2(context, algorithm, NULL) != 1) {
        EVP_MD_CTX_free(context);
        context = NULL;
    } else if (index < countof(sha_contexts)) {
        atomic_store_explicit(&sha_contexts[index], context, memory_order_release);
    }
    EVP_MD_free(algorithm);
    return context;
}

void script_sha(struct slice source, char sha[SCRIPT_SHA_DIGITS + 1])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;

    if (sha_context == NULL)
        sha_context = sha_context_create();
    if (sha_context == NULL || EVP_DigestInit_ex2(sha_context, NULL, NULL) != 1 ||
        EVP_DigestUpdate(sha_context, source.size != 0 ? source.data : "", source.size) != 1 ||
        EVP_DigestFinal_ex(sha_context, digest, &size) != 1)
        panic("OpenSSL has no SHA-1, which identifies scripts");
    for (unsigned i = 0; i < SCRIPT_SHA_DIGITS / 2; i++) {
        sha[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        sha[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    sha[SCRIPT_SHA_DIGITS] = '\0';
}

static struct compiled *find_compiled(struct script_host *host, struct slice sha)
{
    struct compiled *compiled = host->last;
    uint64_t hash, *slot;

    if (compiled != NULL && compiled_has_sha(compiled, sha.data) && !script_is_dropped(compiled->script)) {
        script_mark_used(compiled->script);
        return compiled;
    }
    hash = hash_bytes(sha.data, sha.size);
    slot = table_find_slot(&host->compiled, hash, compiled_has_sha, sha.data);
    if (slot == NULL)
        return NULL;
    compiled = table_slot_item(slot);
    if (LIKELY(!script_is_dropped(compiled->script))) {
        script_mark_used(compiled->script);
        host->last = compiled;
        return compiled;
    }
    table_remove(&host->compiled, hash, slot);
    compiled_free(compiled, host);
    return NULL;
}

struct script *script_host_find(struct script_host *host, struct slice sha)
{
    char lower[SCRIPT_SHA_DIGITS];
    struct compiled *compiled;

    script_host_assert_here(host);
    if (sha.size != SCRIPT_SHA_DIGITS)
        return NULL;
    compiled = host->last;
    if (LIKELY(compiled != NULL && compiled_has_sha(compiled, sha.data) && !script_is_dropped(compiled->script)))
        return compiled->script; /* in lower case already, as in most requests */
    for (size_t i = 0; i < sizeof(lower); i++)
        lower[i] = slice_lower(sha.data[i]);
    compiled = find_compiled(host, slice_make(lower, sizeof(lower)));
    return compiled != NULL ? compiled->script : NULL;
}

struct script *script_host_find_source(struct script_host *host, struct slice source)
{
    struct script *script = host->last != NULL ? host->last->script : NULL;
    char sha[SCRIPT_SHA_DIGITS + 1];
    struct compiled *compiled;

    script_host_assert_here(host);
    if (LIKELY(script != NULL && !script_is_dropped(script) &&
               slice_equal(slice_make(script->source, script->source_size), source)))
        return script;
    script_sha(source, sha);
    compiled = find_compiled(host, slice_make(sha, SCRIPT_SHA_DIGITS));
    return compiled != NULL ? compiled->script : NULL;
}

struct compile {
    struct slice body;
    int function; /* the result */
    struct buffer *error;
};

/* Pops a message into the buffer. */
static void take_message(lua_State *L, struct buffer *error)
{
    size_t size;
    const char *text = lua_tolstring(L, -1, &size);

    if (text != NULL)
        buffer_append(error, text, size);
    lua_pop(L, 1);
}

static int compile_protected(lua_State *L)
{
    struct compile *compile = lua_touserdata(L, 1);

    if (lua_vm_compile(L, compile->body, "@user_script", true))
        compile->function = luaL_ref(L, LUA_REGISTRYINDEX);
    else
        take_message(L, compile->error);
    return 0;
}

/* LUA_NOREF: `error` has the reply. */
static int compile_body(struct script_host *host, struct slice body, struct buffer *error)
{
    struct compile compile = {body, LUA_NOREF, error};
    const int top = lua_gettop(host->vm->L);

    buffer_append_text(error, "ERR Error compiling script (new function): ");
    if (lua_cpcall(host->vm->L, compile_protected, &compile) != 0)
        take_message(host->vm->L, error);
    assert(lua_gettop(host->vm->L) == top);
    return compile.function;
}

bool script_host_check(struct script_host *host, struct slice body, struct buffer *error)
{
    int function = compile_body(host, body, error);

    script_host_assert_here(host);
    luaL_unref(host->vm->L, LUA_REGISTRYINDEX, function);
    return function != LUA_NOREF;
}

static struct compiled *compile_script(struct script_host *host, struct script *script, struct buffer *error)
{
    struct slice source = slice_make(script->source, script->source_size), body;
    struct compiled *compiled;
    uint32_t flags;
    char text[256];
    int function;

    if (!script_read_shebang(source, &flags, &body, text, sizeof(text))) {
        buffer_append_text(error, text);
        return NULL;
    }
    function = compile_body(host, body, error);
    if (function == LUA_NOREF)
        return NULL;
    if (table_count(&host->compiled) >= COMPILED_MOST) /* scripts that are still in use will be compiled again */
        table_clear(&host->compiled, compiled_free, host);
    compiled = mem_alloc(sizeof(*compiled));
    compiled->function = function;
    compiled->script = script;
    atomic_fetch_add_explicit(&script->references, 1, memory_order_relaxed);
    table_insert(&host->compiled, script->hash, compiled, compiled_hash);
    return compiled;
}

/* ------------------------------------------------------------------------------------------------------ running -- */

/* The innermost line of the script's own text that runs now; 0: none. */
static int line_of_script(lua_State *L)
{
    lua_Debug frame;

    for (int level = 1; lua_getstack(L, level, &frame) != 0; level++) {
        if (lua_getinfo(L, "Sl", &frame) != 0 && frame.currentline > 0)
            return frame.currentline;
    }
    return 0;
}

/* Where the function was defined: all that is known of one that ended in "return redis.call(...)". */
static int line_of_function(lua_State *L, const struct script_run *run)
{
    lua_Debug function;

    lua_rawgeti(L, LUA_REGISTRYINDEX, run->function);
    return lua_getinfo(L, ">S", &function) != 0 ? function.linedefined : 0;
}

static int note_error(lua_State *L)
{
    struct script_run *run = here->run;

    run->error_line = line_of_script(L);
    if (run->error_line == 0)
        run->error_line = line_of_function(L, run);
    return 1;
}

static void push_words(lua_State *L, const struct slice *words, uint32_t count)
{
    lua_createtable(L, (int)MIN(count, 1U << 20), 0);
    for (uint32_t i = 0; i < count; i++) {
        lua_pushlstring(L, words[i].size != 0 ? words[i].data : "", words[i].size);
        lua_rawseti(L, -2, (int)i + 1);
    }
}

static void count_error(struct slice text, void *context)
{
    worker_count_error(context, text);
}

/* Runs the script and writes its reply, in protected mode. */
static int call_script(lua_State *L)
{
    struct script_host *host = here;
    struct script_run *run = host->run;

    lua_rawgeti(L, LUA_REGISTRYINDEX, run->function);
    if (run->is_function) {
        push_words(L, run->keys, run->key_count);
        push_words(L, run->args, run->arg_count);
    } else {
        lua_rawgeti(L, LUA_REGISTRYINDEX, host->vm->globals);
        push_words(L, run->keys, run->key_count);
        lua_setfield(L, -2, "KEYS");
        push_words(L, run->args, run->arg_count);
        lua_setfield(L, -2, "ARGV");
        lua_pop(L, 1);
    }
    lua_call(L, run->is_function ? 2 : 0, 1);
    lua_values_write(L, &run->out, run->request->proto, run->proto, &run->failed, count_error, host->worker);
    return 0;
}

/* The error at the top of the stack, popped, becomes the reply. In protected mode for its memory. */
static int describe_error(lua_State *L)
{
    struct script_run *run = here->run;
    struct buffer *text = &here->calls.text;
    bool counted = false, is_table = lua_istable(L, 1);
    struct slice message = SLICE_EMPTY;

    text->size = 0;
    if (is_table) {
        lua_pushliteral(L, "ignore_error_stats_update");
        lua_rawget(L, 1);
        counted = lua_toboolean(L, -1) != 0;
        lua_pushliteral(L, "err");
        lua_rawget(L, 1);
    } else {
        buffer_append_text(text, "ERR ");
        if (lua_isnil(L, 1))
            lua_pushliteral(L, "nil");
        else if (lua_isboolean(L, 1))
            lua_pushstring(L, lua_toboolean(L, 1) ? "true" : "false");
        else
            lua_pushvalue(L, 1);
    }
    if (lua_isstring(L, -1))
        message.data = lua_tolstring(L, -1, &message.size);
    else
        message = is_table ? SLICE("ERR unknown error") : SLICE("unknown error");
    buffer_append(text, message.data, message.size);
    buffer_printf(text, " script: %s, on @%s:%d.", run->name, run->place, run->error_line > 0 ? run->error_line : 1);
    if (!counted)
        worker_count_error(here->worker, buffer_slice(text));
    return 0;
}

static void reply_failure(struct script_host *host, struct script_run *run, lua_State *L)
{
    output_clear(&run->out);
    run->failed = true;
    lua_rawgeti(L, LUA_REGISTRYINDEX, host->describe_error);
    lua_insert(L, -2);
    if (lua_pcall(L, 1, 0, 0) != 0) {
        lua_pop(L, 1);
        host->calls.text.size = 0;
        buffer_append_text(&host->calls.text, "ERR not enough memory");
    }
    resp_write_error(run->request->out, buffer_slice(&host->calls.text));
    run->request->failed = true;
}

/* Checks before the run; replies and returns true if the script must not run. */
static bool refuse_run(struct script_run *run)
{
    struct request *request = run->request;
    char room[FAULT_DENIAL_SPACE];
    const char *denial;

    if ((run->flags & SCRIPT_UNDECLARED) != 0) {
        if (!command_check_is_stale(request->client))
            return false;
        reply_error(request, command_check_stale_denial);
        return true;
    }
    denial = (run->flags & SCRIPT_NO_WRITES) == 0 ? command_check_write_denial(request->client, room) : NULL;
    if (denial == NULL && command_check_is_stale(request->client) && (run->flags & SCRIPT_ALLOW_STALE) == 0)
        denial = command_check_stale_denial;
    if (denial != NULL)
        reply_error(request, denial);
    else if (run->read_only && (run->flags & SCRIPT_NO_WRITES) == 0)
        reply_error(request, "ERR Can not execute a script with write flag using *_ro command.");
    else if (run->memory_short && (run->flags & (SCRIPT_NO_WRITES | SCRIPT_ALLOW_OOM)) == 0)
        reply_error(request, "OOM allow-oom flag is not set on the script, can not run it when used memory > "
                             "'maxmemory'");
    else
        return false;
    return true;
}

void script_host_run(struct script_host *host, struct script_run *run)
{
    struct request *request = run->request;
    struct client *client = request->client;
    lua_State *L = host->vm->L;
    const unsigned db = client->db;
    const uint8_t proto = client->proto;
    const bool is_watched = !child_is_copy(); /* a debugging session may run in a forked child */

    script_host_assert_here(host);
    worker_assert_inside(host->worker);
    assert(host->run == NULL && request->worker == host->worker);
    assert(lua_gettop(L) == 0);
    request->effect = EFFECT_NONE; /* the effects of its commands are journaled, not the script */
    run->memory_short = (client->flags & CLIENT_MEMORY_SHORT) != 0;
    if (refuse_run(run))
        return;
    output_init(&run->out, loop_output_pool(host->worker->loop));
    run->db = request->db;
    run->proto = 2;
    run->repl = REPL_ALL;
    run->read_only = run->read_only || (run->flags & (SCRIPT_NO_WRITES | SCRIPT_UNDECLARED)) == SCRIPT_NO_WRITES;
    run->started_tick = tick_now();
    host->run = run;
    if (is_watched)
        script_watch_begin(host->worker);
    lua_vm_before(host->vm);
    host->vm->environment = run->is_function ? host->functions.environment : 0;
    script_settings_before(&host->settings, host->vm->cjson, run->is_function);
    lua_rawgeti(L, LUA_REGISTRYINDEX, host->note_error);
    lua_rawgeti(L, LUA_REGISTRYINDEX, host->call_script);
    if (lua_pcall(L, 0, 0, 1) != 0)
        reply_failure(host, run, L);
    else
        output_splice(request->out, &run->out);
    assert(lua_gettop(L) == 1); /* the error handler */
    request->failed = request->failed || run->failed;
    lua_settop(L, 0);
    if (is_watched)
        script_watch_end(host->worker);
    script_busy_end(run);
    if (UNLIKELY(host->vm->is_ending))
        script_api_watch(L);
    script_settings_after(&host->settings, host->vm->cjson);
    lua_vm_after(host->vm);
    output_clear(&run->out);
    host->run = NULL;
    client->db = db; /* SELECT in a script is the script's alone */
    client->proto = proto;
}

/* What script_host_find has found runs, also if SCRIPT FLUSH of another worker drops it just now: it is alive only as
 * long as it is here. */
static struct compiled *compiled_of(struct script_host *host, struct script *script)
{
    if (host->last == NULL || host->last->script != script)
        return find_compiled(host, slice_make(script->sha, SCRIPT_SHA_DIGITS));
    script_mark_used(script);
    return host->last;
}

void script_host_run_script(struct script_host *host, struct request *request, struct script *script, bool read_only,
                            uint32_t key_count)
{
    struct compiled *compiled = compiled_of(host, script);
    struct buffer error = {0};
    struct script_run run = {.request = request,
                             .name = script->sha,
                             .place = "user_script",
                             .flags = script->flags,
                             .read_only = read_only,
                             .keys = request->args + 3,
                             .key_count = key_count,
                             .args = request->args + 3 + key_count,
                             .arg_count = request->arg_count - 3 - key_count};

    if (compiled == NULL)
        compiled = compile_script(host, script, &error);
    if (compiled != NULL) {
        run.function = compiled->function;
        script_host_run(host, &run);
    } else {
        request->effect = EFFECT_NONE;
        request->failed = true;
        worker_count_error(request->worker, buffer_slice(&error));
        resp_write_error(request->out, buffer_slice(&error));
    }
    buffer_fini(&error);
}
