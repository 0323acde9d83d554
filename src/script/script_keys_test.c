/* Which scripts are seen to keep to their keys: texts of both kinds; and random ones, of which those that are believed
 * run with a redis.call that looks at the keys it gets. */
#include "script/script_keys.h"

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/random.h"
#include "base/test_seed.h"
#include "script/lua_vm.h"
#include "server/command/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void run_nothing(struct request *request)
{
    (void)request;
}

static enum access_class decided_by_words(const struct slice *args, uint32_t arg_count)
{
    (void)args;
    (void)arg_count;
    return ACCESS_EXCLUSIVE;
}

#define KEY1 "@index:1@range:0,1,0"

/* clang-format off */
static const struct command_row subs[] = {
    {.name = "encoding", .run = run_nothing, .arity = 3, .access = ACCESS_STRIPED, .keys = "RO@index:2@range:0,1,0"},
    {0},
};
static const struct command_row rows[] = {
    {.name = "get", .run = run_nothing, .arity = 2, .access = ACCESS_STRIPED, .keys = "RO,ACCESS" KEY1},
    {.name = "set", .run = run_nothing, .arity = -3, .access = ACCESS_STRIPED, .keys = "RW,VARIABLE_FLAGS" KEY1},
    {.name = "del", .run = run_nothing, .arity = -2, .access = ACCESS_STRIPED, .keys = "RM@index:1@range:-1,1,0"},
    {.name = "mset", .run = run_nothing, .arity = -3, .access = ACCESS_STRIPED, .keys = "OW@index:1@range:-1,2,0"},
    {.name = "bitop", .run = run_nothing, .arity = -4, .access = ACCESS_STRIPED,
     .keys = "OW@index:2@range:0,1,0 RO@index:3@range:-1,1,0"},
    {.name = "blpop", .run = run_nothing, .arity = -3, .access = ACCESS_STRIPED, .keys = "RW@index:1@range:-2,1,0"},
    {.name = "zunion", .run = run_nothing, .arity = -3, .access = ACCESS_STRIPED, .keys = "RO@index:1@keynum:0,1,1"},
    {.name = "sort", .run = run_nothing, .arity = -2, .access_of = decided_by_words, .keys = "RO" KEY1},
    {.name = "keys", .run = run_nothing, .arity = 2},
    {.name = "scan", .run = run_nothing, .arity = -2, .access = ACCESS_WALK},
    {.name = "time", .run = run_nothing, .arity = 1, .access = ACCESS_FREE},
    {.name = "publish", .run = run_nothing, .arity = 3, .access = ACCESS_GATED},
    {.name = "eval", .run = run_nothing, .arity = -3, .access = ACCESS_STRIPED, .flags = "noscript script"},
    {.name = "object", .arity = -2, .subcommands = subs},
    {0},
};
/* clang-format on */

static int set_up(void **state)
{
    static const struct command_row *const tables[] = {rows};

    (void)state;
    command_registry_setup(tables, countof(tables));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    command_registry_teardown();
    return 0;
}

static void expect(const char *const *texts, size_t count, bool wanted)
{
    for (size_t i = 0; i < count; i++) {
        if (script_keys_are_declared(slice_from_text(texts[i])) != wanted)
            fail_msg("%s: not expected to be %s", texts[i], wanted ? "refused" : "believed");
    }
}

static void scripts_that_keep_to_their_keys(void **state)
{
    static const char *const texts[] = {
        "",
        "return 1",
        "return redis.call('GET', KEYS[1])",
        "return redis.pcall(\"get\", KEYS[2])",
        "return keydb . call ( 'get' , KEYS [ 1 ] )",
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1], KEYS[2]) end return 0",
        "for i = 1, #KEYS do redis.call('set', KEYS[i], ARGV[i], unpack(ARGV)) end",
        "local key = KEYS[1] return redis.call('get', key)",
        "local a, b = KEYS[1], KEYS[2]; return redis.call('set', a, redis.call('get', b) .. 'x')",
        "local a = KEYS[1]\nlocal n = tonumber(redis.call('get', a) or '0')\nreturn redis.call('set', a, n + 1)",
        "local a = KEYS[1]",
        "-- redis.call('get', 'other')\nreturn '_G' --[[ KEYS ]]",
        "return redis.call('mset', KEYS[1], ARGV[1], KEYS[2], 'x')",
        "return redis.call('bitop', ARGV[1], KEYS[1], KEYS[2])",
        "return {redis.call('time'), redis.call('publish', ARGV[1], 'x' .. ARGV[2])}",
        "return redis.error_reply('x')",
        "local t = {} t.KEYS = 1 t.redis = 2 return t.load",
        "local f = function(key) return key end return redis.call('get', KEYS[1])",
    };

    (void)state;
    expect(texts, countof(texts), true);
}

static void scripts_that_may_not(void **state)
{
    static const char *const texts[] = {
        "return redis.call('get', 'other')",
        "return redis.call('get', ARGV[1])",
        "return redis.call('get', KEYS[1] .. 'x')",
        "return redis.call('get', 'x' .. KEYS[1])",
        "return redis.call('get', KEYS[1][2])",
        "return redis.call('get', (KEYS[1]))",
        "return redis.call('del', KEYS[1], 'other')",
        "return redis.call('del', unpack(ARGV))",
        "return redis.call('del', KEYS[1], unpack(ARGV))",
        "return redis.call('mset', KEYS[1], unpack(ARGV))",
        "return redis.call('mset', KEYS[1], f'x')",
        "return redis.call('mset', KEYS[1], f{})",
        "return redis.call('bitop', unpack(ARGV))",
        "return redis.call('bitop', ...)",
        "return redis.call(ARGV[1], KEYS[1])",
        "return redis.call([[get]], KEYS[1])",
        "return redis.call('g\\101t', KEYS[1])",
        "return redis.call('get' .. '', KEYS[1])",
        "return redis.call(unpack(ARGV))",
        "return redis.call'get'",
        "return redis.call{'get'}",
        "return redis['call']('get', 'x')",
        "return redis:call('get')",
        "local call = redis.call return call('get', 'x')",
        "return pcall(redis.call, 'get', 'x')",
        "local r = redis return r.call('get', 'x')",
        "local redis = KEYS[1]",
        "local redis, a = KEYS[1], KEYS[2]",
        "return 'x'..redis",
        "KEYS[1] = 'other' return redis.call('get', KEYS[1])",
        "KEYS = ARGV return redis.call('get', KEYS[1])",
        "local KEYS = ARGV return redis.call('get', KEYS[1])",
        "local function f(KEYS) return redis.call('get', KEYS[1]) end return f(ARGV)",
        "table.insert(KEYS, 'other')",
        "for i, key in ipairs(KEYS) do redis.call('get', key) end",
        "local key = KEYS[1] key = 'other' return redis.call('get', key)",
        "local key = 'other' do local key = KEYS[1] end return redis.call('get', key)",
        "do local key = KEYS[1] end local key = 'other' return redis.call('get', key)",
        "local key = KEYS[1] local function f(key) return redis.call('get', key) end return f('other')",
        "local key = KEYS[1] for key = 1, 2 do redis.call('get', key) end",
        "local key = KEYS[1] local key, b = 'x', 'y' return redis.call('get', key)",
        "local key = KEYS[1] .. 'x' return redis.call('get', key)",
        "local key = KEYS[1] and 'x' return redis.call('get', key)",
        "local key = KEYS[1] or 'x' return redis.call('get', key)",
        "local key = KEYS[1]:upper() return redis.call('get', key)",
        "local a, b = KEYS[1] return redis.call('get', b)",
        "do local _VERSION = KEYS[1] end return redis.call('get', _VERSION)",
        "return _VERSION",
        "local a = KEYS[1], KEYS[2]",
        "redis.call('set', KEYS[1], function() local a, b = 1, 2 end, 'x')",
        "return redis.call('blpop', KEYS[1], 1)",
        "return redis.call('zunion', 1, KEYS[1])",
        "return redis.call('sort', KEYS[1])",
        "return redis.call('keys', '*')",
        "return redis.call('scan', 0)",
        "return redis.call('eval', 'return 1', 0)",
        "return redis.call('object', 'encoding', KEYS[1])",
        "return redis.call('nothing', KEYS[1])",
        "return redis.call('set', KEYS[1], redis.call('get', 'other'))",
        "return redis.call('set', KEYS[1], (redis.call('get', 'other')))",
        "return _G.redis",
        "return getfenv(0)",
        "return load('return redis')()",
        "return loadstring('return redis')()",
        "redis.call('get', KEYS[1]",
        "redis.call(",
        "redis.",
        "redis",
        "local a = KEYS[",
    };

    (void)state;
    expect(texts, countof(texts), false);
}

/* Calls in the arguments of calls are followed for a while. */
static void nested_calls_have_a_limit(void **state)
{
    struct buffer text = {0};

    (void)state;
    for (unsigned depth = 1; depth < 40; depth++) {
        buffer_clear(&text);
        for (unsigned i = 0; i < depth; i++)
            buffer_append_text(&text, "redis.call('set', KEYS[1], ");
        buffer_append_text(&text, "1");
        for (unsigned i = 0; i < depth; i++)
            buffer_append_text(&text, ")");
        assert_int_equal(script_keys_are_declared(buffer_slice(&text)), depth <= 16);
    }
    buffer_fini(&text);
}

/* ------------------------------------------------------------------------------------------------ random scripts -- */

static unsigned believed_calls;

/* redis.call: all that stands at a key's place has to be a declared key, which begins with "key". */
static int check_call(lua_State *L)
{
    const char *name = lua_tostring(L, 1);
    const bool is_all = name != NULL && strcmp(name, "del") == 0;

    for (int i = 2; i <= lua_gettop(L) && (i == 2 || is_all); i++) {
        const char *key = lua_tostring(L, i);

        if (key != NULL && strncmp(key, "key", 3) != 0)
            fail_msg("a key that was not declared: %s", key);
        believed_calls++;
    }
    lua_pushliteral(L, "reply");
    return 1;
}

static void set_words(lua_State *L, struct lua_vm *vm, const char *name, const char *text)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->globals);
    lua_newtable(L);
    for (int i = 1; i <= 3; i++) {
        lua_pushfstring(L, "%s%d", text, i);
        lua_rawseti(L, -2, i);
    }
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
}

static void open_redis(struct lua_vm *vm)
{
    lua_newtable(vm->L);
    lua_pushcfunction(vm->L, check_call);
    lua_setfield(vm->L, -2, "call");
    lua_vm_set_library(vm, "redis");
}

static void make_script(struct random *random, struct buffer *text)
{
    static const char *const pieces[] = {
        "local a = KEYS[1]",
        "local a = ARGV[1]",
        "local b, a = KEYS[1], KEYS[2]",
        "local a, b = KEYS[1], ARGV[1]",
        "a = ARGV[2]",
        "KEYS[1] = 'other'",
        "do",
        "end",
        "if #KEYS > 1 then",
        "for i = 1, 3 do",
        "for a = 1, 3 do",
        "redis.call('get', a)",
        "redis.call('get', KEYS[1])",
        "redis.call('del', KEYS[1], a)",
        "redis.call('get', b)",
        "redis.call('del', KEYS[2], unpack(ARGV))",
        "redis.call('set', a, redis.call('get', KEYS[3]))",
        "redis.call('get', KEYS[i])",
        "local function f(a) redis.call('get', a) end",
        "f(ARGV[1])",
        "f(KEYS[1])",
        "local x = KEYS[1] .. 'x'",
        "redis.call('get', x)",
        "local c = redis.call",
        "redis.call('set', KEYS[1], 'v', a)",
        "local f = function()",
        "f()",
        "--[[ x ]]",
        "-- a",
        ";",
    };
    unsigned count = 1 + (unsigned)random_below(random, 7);

    buffer_clear(text);
    for (unsigned i = 0; i < count; i++)
        buffer_printf(text, "%s\n", pieces[random_below(random, countof(pieces))]);
}

static void believed_scripts_keep_to_their_keys(void **state)
{
    struct lua_vm *vm = lua_vm_create(open_redis);
    struct buffer text = {0};
    struct random random = test_random("believed_scripts_keep_to_their_keys");

    (void)state;
    assert_non_null(vm);
    believed_calls = 0;
    for (unsigned i = 0; i < 100000; i++) {
        make_script(&random, &text);
        if (!script_keys_are_declared(buffer_slice(&text)))
            continue;
        lua_vm_before(vm);
        set_words(vm->L, vm, "KEYS", "key");
        set_words(vm->L, vm, "ARGV", "other");
        lua_settop(vm->L, 0);
        if (lua_vm_compile(vm->L, buffer_slice(&text), "@t", false))
            (void)lua_pcall(vm->L, 0, 0, 0);
        lua_settop(vm->L, 0);
        lua_vm_after(vm);
    }
    print_message("calls: %u\n", believed_calls);
    assert_true(believed_calls > 1000);
    buffer_fini(&text);
    lua_vm_destroy(&vm);
}

/* Each global is known: one that leads to others, or to the text of a function, has to be refused. */
static void no_global_is_forgotten(void **state)
{
    static const char *const harmless[] = {
        "assert",       "bit",    "cjson",        "cmsgpack", "collectgarbage", "coroutine",
        "error",        "gcinfo", "getmetatable", "ipairs",   "math",           "next",
        "os",           "pairs",  "pcall",        "rawequal", "rawget",         "rawset",
        "select",       "string", "struct",       "table",    "tonumber",       "tostring",
        "setmetatable", "type",   "unpack",       "xpcall",   "print",          "rawlen",
    };
    struct lua_vm *vm = lua_vm_create(NULL);

    (void)state;
    assert_non_null(vm);
    lua_rawgeti(vm->L, LUA_REGISTRYINDEX, vm->globals);
    for (lua_pushnil(vm->L); lua_next(vm->L, -2) != 0; lua_pop(vm->L, 1)) {
        const char *name = lua_tostring(vm->L, -2);
        bool is_harmless = false;

        for (size_t i = 0; i < countof(harmless); i++)
            is_harmless = is_harmless || strcmp(name, harmless[i]) == 0;
        if (script_keys_are_declared(slice_from_text(name)) != is_harmless)
            fail_msg("global %s: %s", name, is_harmless ? "refused" : "believed");
    }
    lua_settop(vm->L, 0);
    lua_vm_destroy(&vm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scripts_that_keep_to_their_keys), cmocka_unit_test(scripts_that_may_not),
        cmocka_unit_test(nested_calls_have_a_limit),       cmocka_unit_test(believed_scripts_keep_to_their_keys),
        cmocka_unit_test(no_global_is_forgotten),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
