#include "script/script_api.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "script/debug_session.h"
#include "script/lua_values.h"
#include "script/script_busy.h"
#include "script/script_host_priv.h"
#include "script/script_watch.h"
#include "server/acl/acl_client.h"
#include "server/core/client.h"
#include "server/core/server.h"
#include "server/durable/child.h"
#include "server/run/dispatch.h"
#include "server/run/protect.h"
#include "server/run/command_check.h"

#include <math.h>
#include <stdio.h>

enum { LOAD_MOST_MS = 500, HOOK_INSTRUCTIONS = 20000 };

/* The run this is called from. A library that is being loaded has none. */
static struct script_run *run_of(lua_State *L, const char *function)
{
    struct script_run *run = script_host_running();

    if (run == NULL)
        luaL_error(L, "%s can only be called inside a script invocation", function);
    return run;
}

/* Raises an error as scripts know errors, with the code in it, and counts it. */
static int fail(lua_State *L, const char *text)
{
    struct script_host *host = script_host_of_thread();

    if (host != NULL && host->worker != NULL)
        worker_count_error(host->worker, slice_from_text(text));
    lua_values_push_error(L, slice_from_text(text));
    return lua_error(L);
}

/* -------------------------------------------------------------------------------------------------- call, pcall -- */

void script_calls_fini(struct script_calls *calls)
{
    mem_free(calls->words);
    mem_free(calls->numbers);
    key_list_fini(&calls->keys);
    buffer_fini(&calls->text);
}

static void calls_reserve(struct script_calls *calls, uint32_t count)
{
    if (count <= calls->capacity)
        return;
    calls->capacity = MAX(count, calls->capacity * 2 + 16);
    calls->words = mem_realloc(calls->words, calls->capacity * sizeof(*calls->words));
    calls->numbers = mem_realloc(calls->numbers, calls->capacity * sizeof(*calls->numbers));
}

/* As scripts' numbers have always been told to commands: 17 digits, as few as say it. */
static struct slice number_text(double number, char *text)
{
    if (number > -1e15 && number < 1e15 && floor(number) == number && (number != 0 || !signbit(number)))
        return slice_make(text, (size_t)snprintf(text, 32, "%lld", (long long)number));
    return slice_make(text, (size_t)snprintf(text, 32, "%.17g", number));
}

/* The arguments as words; false: one is neither a text nor a number. */
static bool take_words(lua_State *L, struct script_calls *calls, uint32_t count)
{
    calls_reserve(calls, count);
    for (uint32_t i = 0; i < count; i++) {
        switch (lua_type(L, (int)i + 1)) {
        case LUA_TSTRING:
            calls->words[i].data = lua_tolstring(L, (int)i + 1, &calls->words[i].size);
            break;
        case LUA_TNUMBER:
            calls->words[i] = number_text(lua_tonumber(L, (int)i + 1), calls->numbers[i]);
            break;
        default:
            return false;
        }
    }
    return true;
}

static const struct command *find_command(const struct slice *words, uint32_t count)
{
    const struct command *command = command_find(words[0]);

    if (command != NULL && command->subcommand_count != 0 && count > 1)
        command = command_find_subcommand(command, words[1]);
    return command;
}

/* Why it may not be called now; NULL: it may. */
static const char *refusal(const struct script_run *run, const struct command *command, const struct slice *words,
                           uint32_t count)
{
    static _Thread_local char room[ACL_REFUSAL_SPACE];
    const uint32_t changes = COMMAND_WRITE | COMMAND_MAY_REPLICATE;
    const char *error;

    if (command == NULL)
        return "ERR Unknown Redis command called from script";
    if (!command_arity_fits(command, count))
        return "ERR Wrong number of args calling Redis command from script";
    if ((command->flags & COMMAND_NOSCRIPT) != 0 && !protect_scripts_are_open())
        return "ERR This Redis command is not allowed from script";
    if ((command->flags & COMMAND_STALE) == 0 && command_check_is_stale(run->request->client))
        return "ERR Can not execute the command on a stale replica";
    static_assert(sizeof(room) >= FAULT_DENIAL_SPACE, "room for each denial");
    error = acl_refusal_in_script(run->request, command, words, count, room);
    if (error != NULL)
        return error;
    if (run->read_only && (command->flags & changes) != 0)
        return "ERR Write commands are not allowed from read-only scripts.";
    if (run->memory_short && !run->wrote && (command->flags & COMMAND_DENYOOM) != 0 &&
        (run->flags & SCRIPT_ALLOW_OOM) == 0)
        return "OOM command not allowed when used memory > 'maxmemory'.";
    error = (command->flags & COMMAND_WRITE) != 0 && !run->wrote
                ? command_check_write_denial(run->request->client, room)
                : NULL;
    if (error != NULL)
        return error;
    return protect_command_refusal(command, run->request->client);
}

static void reject(const struct script_run *run, const struct command *command, const char *error)
{
    struct worker *worker = run->request->worker;

    worker_count_error(worker, slice_from_text(error));
    if (command != NULL)
        counter_add(&worker->stats.rejected_calls[command->id], 1);
}

/* Finds the command's keys; false: some stripe of theirs is not held. */
static bool find_keys(struct script_host *host, const struct command *command, uint32_t word_count, uint32_t *key_count)
{
    struct script_calls *calls = &host->calls;
    struct access *access = &host->worker->run.access;
    bool held = true;

    calls->keys.count = 0;
    *key_count = key_list_add(&calls->keys, command, calls->words, word_count);
    for (uint32_t i = 0; i < *key_count; i++)
        held = held && access_holds(access, access_stripe_of(access, &calls->keys.items[i]));
    return held;
}

/* Runs the command in calls->words; its reply is left in `out`. Otherwise an error. */
static const char *run_command(struct script_host *host, const struct command *command, uint32_t word_count,
                               struct output *out)
{
    struct script_run *run = host->run;
    struct client *client = run->request->client;
    struct script_calls *calls = &host->calls;
    enum access_class class = command_access(command, calls->words, word_count);
    uint32_t key_count, effect_count = host->worker->run.effects.count;
    bool held = find_keys(host, command, word_count, &key_count);

    script_host_assert_here(host);
    assert(run->request->worker == host->worker);
    if (class != ACCESS_FREE && class != ACCESS_GATED && (!held || class != ACCESS_STRIPED)) {
        if (UNLIKELY(!dispatch_may_escalate(host->worker)))
            return "ERR The script needs keys that are not seen in its text";
        dispatch_escalate(host->worker);
    }
    client->db = run->db;
    client->proto = (uint8_t)run->proto;
    dispatch_call(run->request, &(struct nested_call){.command = command,
                                                      .args = calls->words,
                                                      .arg_count = word_count,
                                                      .keys = calls->keys.items,
                                                      .key_count = key_count,
                                                      .out = out,
                                                      .by_script = true});
    run->db = client->db;
    run->wrote = run->wrote || (command->flags & COMMAND_WRITE) != 0;
    if (run->repl == REPL_NONE)
        effects_cut(&host->worker->run.effects, effect_count);
    else if (run->repl != REPL_ALL)
        effects_hide(&host->worker->run.effects, effect_count, run->repl == REPL_AOF ? EFFECT_REPLICAS : EFFECT_AOF);
    return NULL;
}

/* Pushes the reply's value. The reply is copied where it is in pieces; it goes before an error could leave it. */
static void push_reply(lua_State *L, struct script_host *host, struct output *out, bool *is_error)
{
    struct buffer *text = &host->calls.text;

    text->size = 0;
    output_to_buffer(out, text);
    output_clear(out);
    if (UNLIKELY(text->size == 0)) { /* CLIENT REPLY and others, where DEBUG lets scripts call them */
        lua_pushboolean(L, false);
        *is_error = false;
        return;
    }
    if (UNLIKELY(host->debug != NULL))
        debug_session_note_reply(host->debug, buffer_slice(text));
    lua_values_push_reply(L, buffer_slice(text), host->run->proto, is_error);
    if (text->capacity > 1 << 20)
        buffer_fini(text);
}

/* What the arguments say; the words are left in calls->words. Returns an error. */
static const char *take_call(lua_State *L, struct script_host *host, uint32_t count, const struct command **command)
{
    struct script_calls *calls = &host->calls;
    const char *error = count == 0 ? "ERR Please specify at least one argument for this redis lib call"
                        : !take_words(L, calls, count)
                            ? "ERR Lua redis lib command arguments must be strings or integers"
                            : NULL;

    if (error != NULL) {
        worker_count_error(host->worker, slice_from_text(error));
        return error;
    }
    if (UNLIKELY(host->debug != NULL))
        debug_session_note_call(host->debug, calls->words, count);
    *command = find_command(calls->words, count);
    error = refusal(host->run, *command, calls->words, count);
    if (error == NULL && ((*command)->flags & COMMAND_WRITE) != 0 && !script_busy_may_write(host->run))
        error = "ERR The script must end";
    if (error != NULL)
        reject(host->run, *command, error);
    return error;
}

static int call(lua_State *L, bool raises)
{
    struct script_host *host;
    uint32_t count = (uint32_t)lua_gettop(L);
    const struct command *command;
    const char *error;
    struct output out;
    bool is_error = true;

    (void)run_of(L, "redis.call/pcall");
    host = script_host_of_thread();
    error = take_call(L, host, count, &command);
    if (error == NULL) {
        output_init(&out, loop_output_pool(host->worker->loop));
        error = run_command(host, command, count, &out);
        if (error != NULL)
            reject(host->run, command, error);
    }
    if (UNLIKELY(error != NULL)) {
        if (UNLIKELY(host->debug != NULL))
            debug_session_note_refusal(host->debug, error);
        lua_values_push_error(L, slice_from_text(error));
    } else {
        lua_settop(L, 0); /* as many arguments as a function may have leave no room for a reply */
        push_reply(L, host, &out, &is_error);
        assert(lua_gettop(L) == 1);
    }
    if (is_error && raises)
        return lua_error(L);
    return 1;
}

static int api_call(lua_State *L)
{
    return call(L, true);
}

int script_api_pcall(lua_State *L)
{
    return call(L, false);
}

/* ------------------------------------------------------------------------------------------------------- replies -- */

static int api_error_reply(lua_State *L)
{
    struct slice text;
    const char *code = "";

    if (lua_gettop(L) != 1 || lua_type(L, -1) != LUA_TSTRING) {
        lua_newtable(L);
        lua_pushliteral(L, "ERR wrong number or type of arguments");
        lua_setfield(L, -2, "err");
        return 1;
    }
    text.data = lua_tolstring(L, 1, &text.size);
    if (text.size != 0 && text.data[0] == '-')
        text = slice_skip(text, 1);
    if (memchr(text.data, ' ', text.size) == NULL)
        code = "ERR ";
    lua_newtable(L);
    lua_pushstring(L, code);
    lua_pushlstring(L, text.data, text.size);
    lua_concat(L, 2);
    lua_setfield(L, -2, "err");
    return 1;
}

static int api_status_reply(lua_State *L)
{
    lua_newtable(L);
    if (lua_gettop(L) != 2 || lua_type(L, 1) != LUA_TSTRING) {
        lua_pushliteral(L, "ERR wrong number or type of arguments");
        lua_setfield(L, -2, "err");
        return 1;
    }
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "ok");
    return 1;
}

static int api_sha1hex(lua_State *L)
{
    char sha[SCRIPT_SHA_DIGITS + 1];
    struct slice text;

    if (lua_gettop(L) != 1)
        return fail(L, "ERR wrong number of arguments");
    text.data = lua_tolstring(L, 1, &text.size);
    if (text.data == NULL)
        text = SLICE_EMPTY;
    script_sha(text, sha);
    lua_pushstring(L, sha);
    return 1;
}

/* ------------------------------------------------------------------------------------------------------ settings -- */

static int api_log(lua_State *L)
{
    static const enum log_level levels[] = {LOG_LEVEL_DEBUG, LOG_LEVEL_VERBOSE, LOG_LEVEL_NOTICE, LOG_LEVEL_WARNING};
    int count = lua_gettop(L);
    double level;
    struct slice text;

    if (count < 2)
        return fail(L, "ERR redis.log() requires two arguments or more.");
    if (!lua_isnumber(L, 1))
        return fail(L, "ERR First argument must be a number (log level).");
    level = lua_tonumber(L, 1);
    if (!(level >= 0 && level <= 3))
        return fail(L, "ERR Invalid debug level.");
    for (int i = 2; i <= count; i++) {
        if (lua_isstring(L, i)) {
            lua_pushvalue(L, i);
        } else {
            lua_pushliteral(L, "");
        }
        if (i > 2) {
            lua_pushliteral(L, " ");
            lua_insert(L, -2);
            lua_concat(L, 3);
        }
    }
    text.data = lua_tolstring(L, -1, &text.size);
    if (log_wants(levels[(int)level]))
        log_write(levels[(int)level], "%.*s", (int)MIN(text.size, (size_t)1024), text.data);
    return 0;
}

static int api_setresp(lua_State *L)
{
    struct script_run *run = run_of(L, "redis.setresp");
    double proto;

    if (lua_gettop(L) != 1)
        return fail(L, "ERR redis.setresp() requires one argument.");
    proto = lua_tonumber(L, 1);
    if (proto != 2 && proto != 3)
        return fail(L, "ERR RESP version must be 2 or 3.");
    run->proto = (int)proto;
    return 0;
}

static int api_set_repl(lua_State *L)
{
    struct script_run *run = run_of(L, "redis.set_repl");
    double targets;

    if (lua_gettop(L) != 1)
        return fail(L, "ERR redis.set_repl() requires two arguments.");
    targets = lua_tonumber(L, 1);
    if (!(targets >= REPL_NONE && targets <= REPL_ALL))
        return fail(L, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
    run->repl = (uint32_t)targets;
    return 0;
}

/* Effects are always replicated. */
static int api_replicate_commands(lua_State *L)
{
    lua_pushboolean(L, 1);
    return 1;
}

static struct debug_session *debug_session_here(void)
{
    struct script_host *host = script_host_of_thread();

    return host != NULL ? host->debug : NULL;
}

static int api_breakpoint(lua_State *L)
{
    struct debug_session *session = debug_session_here();

    if (session != NULL)
        debug_session_stop_next(session);
    lua_pushboolean(L, session != NULL);
    return 1;
}

static int api_debug(lua_State *L)
{
    struct debug_session *session = debug_session_here();

    if (session != NULL)
        debug_session_say(session, L);
    return 0;
}

static int api_acl_check_cmd(lua_State *L)
{
    struct script_run *run = run_of(L, "redis.acl_check_cmd");
    struct script_host *host = script_host_of_thread();
    uint32_t count = (uint32_t)lua_gettop(L);
    const struct command *command;

    if (count == 0)
        return fail(L, "ERR Please specify at least one argument for this redis lib call");
    if (!take_words(L, &host->calls, count))
        return fail(L, "ERR Lua redis lib command arguments must be strings or integers");
    command = find_command(host->calls.words, count);
    if (command == NULL)
        return fail(L, "ERR Invalid command passed to redis.acl_check_cmd()");
    if (!command_arity_fits(command, count))
        return fail(L, "ERR Wrong number of args for redis.acl_check_cmd()");
    lua_pushboolean(L, acl_client_may(run->request->client, command, host->calls.words, count));
    return 1;
}

/* --------------------------------------------------------------------------------------------------------- time -- */

static void set_hook(lua_State *L, int mask, int count)
{
    struct lua_vm *vm = lua_vm_of(L);

    assert(vm->sets_hook == 0);
    vm->sets_hook = 1;
    atomic_signal_fence(memory_order_seq_cst);
    lua_sethook(L, script_api_hook, mask, count);
    atomic_signal_fence(memory_order_seq_cst);
    vm->sets_hook = 0;
}

void script_api_look(lua_State *L)
{
    struct script_host *host;
    uint64_t spent_ms;

    if (function_host_is_loading(&spent_ms)) {
        if (spent_ms > LOAD_MOST_MS) {
            script_api_watch_all(L);
            luaL_error(L, "FUNCTION LOAD timeout");
        }
        return;
    }
    host = script_host_of_thread();
    if (host == NULL || (host->debug != NULL && child_is_copy()))
        return;
    script_busy_look(L, host);
}

void script_api_hook(lua_State *L, lua_Debug *debug)
{
    struct script_host *host = script_host_of_thread();

    if (host != NULL && host->debug != NULL)
        debug_session_hook(host->debug, L, debug);
    else if (lua_gethookcount(L) != HOOK_INSTRUCTIONS && !lua_vm_of(L)->is_ending)
        script_api_watch(L); /* it has been rung */
    if (debug->event != LUA_HOOKLINE || lua_vm_of(L)->is_ending)
        script_api_look(L);
}

/* In a signal handler, in the middle of anything. LuaJIT allows its hook to be set then. */
static void ring(void)
{
    struct script_host *host = script_host_of_thread();

    if (host == NULL || host->vm->is_ending)
        return;
    host->vm->is_rung = 1;
    if (host->debug == NULL && host->vm->sets_hook == 0)
        lua_sethook(host->vm->L, script_api_hook, LUA_MASKCOUNT, 1);
}

void script_api_setup(void)
{
    thread_assert_main();
    script_watch_setup(ring);
}

void script_api_watch(lua_State *L)
{
    lua_vm_of(L)->is_ending = false;
    set_hook(L, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
}

void script_api_watch_all(lua_State *L)
{
    lua_vm_of(L)->is_ending = true;
    set_hook(L, LUA_MASKLINE | LUA_MASKCOUNT, 1);
}

void script_api_push(lua_State *L, enum script_api_set set)
{
    enum {
        SCRIPTS = SCRIPT_API_SCRIPTS,
        RUNNING = SCRIPT_API_SCRIPTS | SCRIPT_API_FUNCTIONS,
        ALL = RUNNING | SCRIPT_API_LOADING
    };
    static const struct {
        const char *name;
        lua_CFunction function;
        int sets;
    } functions[] = {
        {"call", api_call, RUNNING},
        {"pcall", script_api_pcall, RUNNING},
        {"error_reply", api_error_reply, RUNNING},
        {"status_reply", api_status_reply, RUNNING},
        {"sha1hex", api_sha1hex, RUNNING},
        {"log", api_log, ALL},
        {"setresp", api_setresp, RUNNING},
        {"set_repl", api_set_repl, RUNNING},
        {"replicate_commands", api_replicate_commands, SCRIPTS},
        {"breakpoint", api_breakpoint, SCRIPTS},
        {"debug", api_debug, SCRIPTS},
        {"acl_check_cmd", api_acl_check_cmd, RUNNING},
    };
    static const struct {
        const char *name;
        int value, sets;
    } numbers[] = {
        {"LOG_DEBUG", 0, ALL},
        {"LOG_VERBOSE", 1, ALL},
        {"LOG_NOTICE", 2, ALL},
        {"LOG_WARNING", 3, ALL},
        {"REPL_NONE", REPL_NONE, RUNNING},
        {"REPL_AOF", REPL_AOF, RUNNING},
        {"REPL_SLAVE", REPL_REPLICA, RUNNING},
        {"REPL_REPLICA", REPL_REPLICA, RUNNING},
        {"REPL_ALL", REPL_ALL, RUNNING},
        {"REDIS_VERSION_NUM", KEYDB_REDIS_VERSION_NUMBER, ALL},
        {"KEYDB_VERSION_NUM", KEYDB_VERSION_NUMBER, ALL},
    };
    static const char *const texts[][2] = {
        {"REDIS_VERSION", KEYDB_REDIS_VERSION},
        {"SERVER_NAME", "keydb"}, /* for scripts that ask which server this is */
        {"KEYDB_VERSION", KEYDB_VERSION},
    };

    lua_newtable(L);
    for (size_t i = 0; i < countof(functions); i++) {
        if ((functions[i].sets & (int)set) != 0) {
            lua_pushcfunction(L, functions[i].function);
            lua_setfield(L, -2, functions[i].name);
        }
    }
    for (size_t i = 0; i < countof(numbers); i++) {
        if ((numbers[i].sets & (int)set) != 0) {
            lua_pushinteger(L, numbers[i].value);
            lua_setfield(L, -2, numbers[i].name);
        }
    }
    for (size_t i = 0; i < countof(texts); i++) {
        lua_pushstring(L, texts[i][1]);
        lua_setfield(L, -2, texts[i][0]);
    }
}

void script_api_set(lua_State *L, int globals)
{
    static const char *const names[] = {"redis", "keydb", "server"};

    for (size_t i = 0; i < countof(names); i++) {
        lua_pushvalue(L, -1);
        lua_setfield(L, globals, names[i]);
    }
    lua_pop(L, 1);
}

void script_api_open(struct lua_vm *vm)
{
    lua_State *L = vm->L;

    script_api_push(L, SCRIPT_API_SCRIPTS);
    lua_vm_push_guard(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->globals);
    lua_insert(L, -2);
    script_api_set(L, lua_gettop(L) - 1);
    lua_pop(L, 1);
}
