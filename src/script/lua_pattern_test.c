/* Patterns, beside LuaJIT's own: random texts, patterns and replacements give the same results and the same errors.
 * Then the addition of ours: work is counted. */
#include "script/lua_vm.h"

#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char script[] =
    "local name, text, pattern, third, fourth = ...\n"
    "local function all(...)\n"
    "  local out = {}\n"
    "  for i = 1, select('#', ...) do out[i] = tostring((select(i, ...))) end\n"
    "  return table.concat(out, '|')\n"
    "end\n"
    "if name == 'gmatch' then\n"
    "  return pcall(function()\n"
    "    local out = {}\n"
    "    for a, b in string.gmatch(text, pattern) do out[#out + 1] = tostring(a) .. '|' .. tostring(b) end\n"
    "    return table.concat(out, ',')\n"
    "  end)\n"
    "end\n"
    "if third == 'f' then third = function(a, b) return a ~= 'a' and tostring(a) .. tostring(b) end end\n"
    "if third == 't' then third = {a = 'x', b = 1, ab = false} end\n"
    "return pcall(function() return all(string[name](text, pattern, third, fourth)) end)";

static void make_word(struct random *random, char *word, size_t most, const char *letters)
{
    size_t size = random_below(random, most + 1);

    for (size_t i = 0; i < size; i++)
        word[i] = letters[random_below(random, strlen(letters))];
    word[size] = '\0';
}

/* The result as one text. */
static void run(lua_State *L, const char *const *arguments, char *result, size_t size)
{
    const char *text;

    lua_settop(L, 0);
    assert_int_equal(luaL_loadbuffer(L, script, sizeof(script) - 1, "=t"), 0);
    for (int i = 0; i < 3; i++)
        lua_pushstring(L, arguments[i]);
    if (strcmp(arguments[0], "gsub") == 0) {
        lua_pushstring(L, arguments[3]);
        arguments[4] != NULL ? lua_pushinteger(L, atoi(arguments[4])) : lua_pushnil(L);
    } else {
        lua_pushinteger(L, atoi(arguments[3]));
        lua_pushboolean(L, arguments[4] != NULL);
    }
    assert_int_equal(lua_pcall(L, 5, 2, 0), 0);
    text = lua_tostring(L, -1);
    snprintf(result, size, "%d %s", lua_toboolean(L, -2), text != NULL ? text : "");
}

static void patterns_are_those_of_luajit(void **state)
{
    static const char *const names[] = {"find", "match", "gmatch", "gsub", "gsub"};
    static const char letters[] = "aaabb.%%[]^$()*+-?1df ";
    struct random random;
    struct lua_vm *vm = lua_vm_create(NULL);
    lua_State *other = luaL_newstate();

    (void)state;
    random = test_random("patterns_are_those_of_luajit");
    luaL_openlibs(other);
    for (int round = 0; round < 300000; round++) {
        char text[16], pattern[12], third[16], number[16], ours[512], theirs[512];
        const char *arguments[5] = {names[random_below(&random, 5)], text, pattern, third, NULL};

        make_word(&random, text, 12, "aaabb c1(");
        make_word(&random, pattern, 9, letters);
        if (strcmp(arguments[0], "gsub") == 0)
            make_word(&random, third, 3, "ft%%01ab");
        else
            snprintf(third, sizeof(third), "%d", (int)random_below(&random, 20) - 10);
        snprintf(number, sizeof(number), "%d", (int)random_below(&random, 4) - 1);
        if (random_below(&random, 4) == 0)
            arguments[4] = number;
        run(vm->L, arguments, ours, sizeof(ours));
        run(other, arguments, theirs, sizeof(theirs));
        if (strcmp(ours, theirs) != 0)
            fail_msg("%s('%s', '%s', '%s', %s): %s; LuaJIT: %s", arguments[0], text, pattern, third,
                     arguments[4] != NULL ? number : "-", ours, theirs);
    }
    lua_close(other);
    lua_vm_destroy(&vm);
}

static void give_up(lua_State *L)
{
    lua_vm_of(L)->is_ending = true;
    luaL_error(L, "enough");
}

static void expect_given_up(struct lua_vm *vm, const char *text)
{
    lua_vm_before(vm);
    vm->is_ending = false;
    lua_settop(vm->L, 0);
    assert_true(lua_vm_compile(vm->L, slice_from_text(text), "=t", false));
    assert_int_not_equal(lua_pcall(vm->L, 0, 0, 0), 0);
    if (strstr(lua_tostring(vm->L, -1), "enough") == NULL)
        fail_msg("%s: %s", text, lua_tostring(vm->L, -1));
}

/* Each would take ages. */
static void long_work_is_looked_at(void **state)
{
    struct lua_vm *vm = lua_vm_create(NULL);

    (void)state;
    vm->look = give_up;
    expect_given_up(vm, "string.find(('a'):rep(60), ('a?'):rep(60) .. ('a'):rep(60))");
    expect_given_up(vm, "string.match(('a'):rep(60), ('a-'):rep(60) .. 'b')");
    expect_given_up(vm, "string.gsub(('a'):rep(60), ('a*'):rep(60) .. 'b', '')");
    expect_given_up(vm, "for x in string.gmatch(('a'):rep(60), ('a+'):rep(60) .. 'b') do end");
    expect_given_up(vm, "string.find(('a'):rep(200000), '(.-)(.-)%1%2b')");
    expect_given_up(vm, "string.find(('('):rep(1000000), '%b()')");
    expect_given_up(vm, "string.gsub(('a'):rep(60000), '', ('x'):rep(60000))");
    expect_given_up(vm, "table.insert({}, -2147483647, 1)");
    expect_given_up(vm, "local t = {} for i = 1, 100000 do t[i] = i end table.sort(t)");
    expect_given_up(vm, "load(function() return ('a=1;'):rep(1000) end)");
    expect_given_up(vm, "loadstring(('a=1;'):rep(100000))");
    lua_vm_destroy(&vm);
}

/* A text is found in a text in linear time: this would be 10^14 comparisons. */
static void plain_texts_are_found_in_linear_time(void **state)
{
    struct lua_vm *vm = lua_vm_create(NULL);

    (void)state;
    assert_true(lua_vm_compile(vm->L,
                               slice_from_text("local a = ('a'):rep(10000000)\n"
                                               "return a:find(('a'):rep(5000000) .. 'b', 1, true) == nil"),
                               "=t", false));
    assert_int_equal(lua_pcall(vm->L, 0, 1, 0), 0);
    assert_true(lua_toboolean(vm->L, -1));
    lua_vm_destroy(&vm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_are_those_of_luajit),
        cmocka_unit_test(long_work_is_looked_at),
        cmocka_unit_test(plain_texts_are_found_in_linear_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
