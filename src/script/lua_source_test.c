#include "script/lua_source.h"

#include <lauxlib.h>
#include <lualib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *source, const char *wanted)
{
    struct buffer out = {0};
    struct slice number;
    unsigned line;

    assert_true(lua_source_prepare(slice_from_text(source), true, &out, &line, &number));
    buffer_append(&out, "", 1);
    assert_string_equal(out.data, wanted);
    buffer_fini(&out);
    assert_true(lua_source_prepare(slice_from_text(source), false, &out, &line, &number));
    buffer_append(&out, "", 1);
    assert_string_equal(out.data, source);
    buffer_fini(&out);
}

static void expect_refused(const char *source, unsigned wanted_line, const char *wanted)
{
    struct buffer out = {0};
    struct slice number = SLICE_EMPTY;
    unsigned line = 0;

    assert_false(lua_source_prepare(slice_from_text(source), true, &out, &line, &number));
    assert_int_equal(line, wanted_line);
    assert_int_equal(number.size, strlen(wanted));
    assert_memory_equal(number.data, wanted, number.size);
    buffer_fini(&out);
}

static void returns_of_the_script_are_patched(void **state)
{
    (void)state;
    expect("return f()", "return true and  f()");
    expect("return(f())", "return true and (f())");
    expect("return", "return");
    expect("return;", "return;");
    expect("if x then return end", "if x then return end");
    expect("if x then return else return 1 end", "if x then return else return true and  1 end");
    expect("repeat return until x", "repeat return until x");
    expect("if x then return f() end return g()", "if x then return true and  f() end return true and  g()");
    expect("while x do return --[[ c ]] f() end", "while x do return true and  --[[ c ]] f() end");
    expect("for i=1,2 do do return f() end end", "for i=1,2 do do return true and  f() end end");
    expect("returned = x return x", "returned = x return true and  x");
    expect("return -- end\nf()", "return true and  -- end\nf()");
}

static void returns_of_functions_stay(void **state)
{
    (void)state;
    expect("local function f() return g() end return f()", "local function f() return g() end return true and  f()");
    expect("f(function() if a then return g() end return h() end)",
           "f(function() if a then return g() end return h() end)");
    expect("return function() for i=1,2 do return f() end end",
           "return true and  function() for i=1,2 do return f() end end");
    expect("end end return f()", "end end return true and  f()");
}

static void texts_and_comments_are_not_read(void **state)
{
    (void)state;
    expect("x = 'return f() 1LL' .. \"return \\\" 1LL\"", "x = 'return f() 1LL' .. \"return \\\" 1LL\"");
    expect("--return f() 1LL\n--[==[ return ]] 1LL ]==] x = [[return 1LL]]",
           "--return f() 1LL\n--[==[ return ]] 1LL ]==] x = [[return 1LL]]");
    expect("x = 'a\\\nreturn 1LL' y = 'a\\z  \n return 1LL'", "x = 'a\\\nreturn 1LL' y = 'a\\z  \n return 1LL'");
    expect("[==", "[==");
    expect("--[==", "--[==");
    expect("[=[ ]=", "[=[ ]=");
    expect("'abc", "'abc");
    expect("'abc\\", "'abc\\");
    expect("a[b[1]]", "a[b[1]]");
    expect("", "");
}

static void numbers_of_ffi_are_refused(void **state)
{
    (void)state;
    expect("x = 1 + 0x1f + 1e5 + 1.5e-3 + .5 + 0xfp-1 .. a1i .. i1",
           "x = 1 + 0x1f + 1e5 + 1.5e-3 + .5 + 0xfp-1 .. a1i .. i1");
    expect_refused("\n\nx = 12LL", 3, "12LL");
    expect_refused("x = 0x1fULL", 1, "0x1fULL");
    expect_refused("x = 1LLU", 1, "1LLU");
    expect_refused("x = 0X1fllu", 1, "0X1fllu");
    expect_refused("x = 1u", 1, "1u");
    expect_refused("x = 1i", 1, "1i");
    expect_refused("x = .5I", 1, ".5I");
    expect_refused("x = 1e5i", 1, "1e5i");
    expect_refused("--[[\n\n]] x = 'a\\\nb' y = 1ll", 4, "1ll");
}

/* The compiler takes both bytes of such a line break after a backslash: the following bytes are still part of the
 * text. */
static void line_breaks_of_two_bytes(void **state)
{
    (void)state;
    expect("x = 'a\\\r\nreturn 1LL'", "x = 'a\\\r\nreturn 1LL'");
    expect("x = 'a\\\n\rreturn 1LL'", "x = 'a\\\n\rreturn 1LL'");
    expect_refused("x = '\\\r\n' y = 1LL --'", 2, "1LL");
    expect_refused("x = '\\\n\r' y = 1LL --'", 2, "1LL");
    expect_refused("x = \"\\z\r\n\" y = 1LL --\"", 2, "1LL");
    expect_refused("x = [[\r\n]] y = 1LL", 2, "1LL");
}

/* A number that compiles to a value of the FFI library is refused, or is not a number: the compiler itself decides. */
static void what_is_let_pass_makes_no_cdata(void **state)
{
    static const char *const heads[] = {
        "return ",         "x = '\\\r\n' return ", "x = '\\\n\r' return ", "x = \"\\z \r\n\" return ",
        "--[[\r]]return ", "--\rreturn "};
    static const char *const digits[] = {"1", "0x1f", "0XF", ".5", "1.", "1e1", "0x1p1", "0"};
    static const char letters[] = "lLuUiIeE";
    lua_State *L = luaL_newstate();
    unsigned made = 0;

    (void)state;
    luaL_openlibs(L);
    for (size_t h = 0; h < sizeof(heads) / sizeof(heads[0]); h++) {
        for (size_t d = 0; d < sizeof(digits) / sizeof(digits[0]); d++) {
            for (unsigned n = 0; n < 8 * 8 * 8 * 8; n++) {
                char source[64];
                struct buffer out = {0};
                struct slice number;
                unsigned line;

                snprintf(source, sizeof(source), "%s%s%c%c%c%c", heads[h], digits[d], letters[n & 7],
                         letters[n >> 3 & 7], letters[n >> 6 & 7], letters[n >> 9 & 7]);
                for (size_t size = strlen(source); size > strlen(source) - 4; size--) {
                    lua_settop(L, 0);
                    if (luaL_loadbuffer(L, source, size, "@t") != 0 || lua_pcall(L, 0, 1, 0) != 0 ||
                        lua_type(L, -1) <= LUA_TTHREAD)
                        continue;
                    made++;
                    assert_false(lua_source_prepare(slice_make(source, size), false, &out, &line, &number));
                    buffer_fini(&out);
                }
            }
        }
    }
    assert_true(made > 100);
    lua_close(L);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_of_the_script_are_patched), cmocka_unit_test(returns_of_functions_stay),
        cmocka_unit_test(texts_and_comments_are_not_read),   cmocka_unit_test(numbers_of_ffi_are_refused),
        cmocka_unit_test(line_breaks_of_two_bytes),          cmocka_unit_test(what_is_let_pass_makes_no_cdata),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
