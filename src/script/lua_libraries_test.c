/* cjson, cmsgpack and struct: each line is a script and its results, as texts separated by blanks; then random values
 * there and back, and damaged bytes. */
#include "script/lua_cjson.h"
#include "script/lua_vm.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct lua_vm *vm;

static int set_up(void **state)
{
    (void)state;
    vm = lua_vm_create(NULL);
    return vm == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    lua_vm_destroy(&vm);
    return 0;
}

/* The first value the script returns, as text, or the error. */
static const char *run(const char *script)
{
    static char text[4096];
    const char *result;

    lua_settop(vm->L, 0);
    if (lua_vm_compile(vm->L, slice_from_text(script), "@t", false))
        (void)lua_pcall(vm->L, 0, 1, 0);
    result = lua_tostring(vm->L, -1);
    snprintf(text, sizeof(text), "%s", result != NULL ? result : lua_typename(vm->L, lua_type(vm->L, -1)));
    lua_settop(vm->L, 0);
    lua_vm_after(vm);
    lua_vm_before(vm);
    lua_cjson_reset(vm->cjson);
    return text;
}

static void expect_all(const char *const *lines)
{
    for (; *lines != NULL; lines += 2) {
        const char *got = run(lines[0]);

        if (strcmp(got, lines[1]) != 0)
            fail_msg("%s: expected %s, got %s", lines[0], lines[1], got);
    }
}

static void cjson_writes(void **state)
{
    static const char *const lines[] = {
        "return cjson.encode({1, 'a', true, cjson.null, {x = 1.5}})",
        "[1,\"a\",true,null,{\"x\":1.5}]",
        "return cjson.encode('\\0\\1\\127\"\\\\/\\b\\f\\n\\r\\t')",
        "\"\\u0000\\u0001\\u007f\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "return cjson.encode({})",
        "{}",
        "return cjson.encode({[1] = 1, [5] = 2})",
        "[1,null,null,null,2]",
        "return select(2, pcall(cjson.encode, {[1] = 1, [20] = 2}))",
        "Cannot serialise table: excessively sparse array",
        "cjson.encode_sparse_array(true) return #cjson.encode({[1] = 1, [20] = 2})",
        "14",
        "return cjson.encode({[1.5] = 1})",
        "{\"1.5\":1}",
        "return select(2, pcall(cjson.encode, 0 / 0))",
        "Cannot serialise number: must not be NaN or Inf",
        "cjson.encode_invalid_numbers('null') return cjson.encode({1 / 0})",
        "[null]",
        "return select(2, pcall(cjson.encode, tostring))",
        "Cannot serialise function: type not supported",
        "local t = {} for i = 1, 999 do t = {t} end return #cjson.encode(t)",
        "2000",
        "local t = {} for i = 1, 1000 do t = {t} end return select(2, pcall(cjson.encode, t))",
        "Cannot serialise, excessive nesting (1001)",
        NULL,
    };

    (void)state;
    expect_all(lines);
}

static void cjson_reads(void **state)
{
    static const char *const lines[] = {
        "local t = cjson.decode(' {\"a\" : [1, -2.5e1, true, null, \"x\\\\u00e9\"] , \"b\" : {}} ') "
        "return t.a[1] .. t.a[2] .. tostring(t.a[3]) .. tostring(t.a[4] == cjson.null) .. t.a[5] .. type(t.b)",
        "1-25truetruex\xc3\xa9table",
        "return cjson.decode('\"\\\\ud83d\\\\ude00\"')",
        "\xf0\x9f\x98\x80",
        "return select(2, pcall(cjson.decode, '\"\\\\ud83d\"'))",
        "Expected value but found invalid unicode escape code at character 2",
        "return select(2, pcall(cjson.decode, '[1,]'))",
        "Expected value but found T_ARR_END at character 4",
        "return select(2, pcall(cjson.decode, '{\"a\" 1}'))",
        "Expected colon but found T_NUMBER at character 6",
        "return select(2, pcall(cjson.decode, '\"abc'))",
        "Expected value but found unexpected end of string at character 5",
        "return select(2, pcall(cjson.decode, '-'))",
        "Expected value but found invalid number at character 1",
        "return select(2, pcall(cjson.decode, ('['):rep(1001)))",
        "Found too many nested data structures (1001) at character 1001",
        "cjson.decode_invalid_numbers(false) return select(2, pcall(cjson.decode, '0x10'))",
        "Expected value but found invalid number at character 1",
        NULL,
    };

    (void)state;
    expect_all(lines);
}

static void cmsgpack_both_ways(void **state)
{
    static const char *const lines[] = {
        "local s = '' for _, n in ipairs({0, 127, 128, 255, 256, 65535, 65536, 4294967295, 4294967296, -1, -32, -33, "
        "-128, -129, -32768, -32769, -2147483648, -2147483649, 1.5, 0.1, 1e300}) do "
        "local p = cmsgpack.pack(n) if cmsgpack.unpack(p) ~= n then return 'differs: ' .. n end s = s .. #p end "
        "return s",
        "112233559112233559599",
        "return #cmsgpack.pack(('x'):rep(31)) .. ' ' .. #cmsgpack.pack(('x'):rep(32)) .. ' ' .. "
        "#cmsgpack.pack(('x'):rep(256)) .. ' ' .. #cmsgpack.pack(('x'):rep(65536))",
        "32 34 259 65541",
        "return select('#', cmsgpack.unpack(cmsgpack.pack(1, nil, {}, 'x')))",
        "4",
        "return cjson.encode({cmsgpack.unpack_one('\\1\\2\\3', 1)})",
        "[2,2]",
        "return cjson.encode({cmsgpack.unpack_limit('\\1\\2\\3', 2, 1)})",
        "[-1,2,3]",
        "return select(2, pcall(cmsgpack.unpack, '\\147\\1'))",
        "Missing bytes in input.",
        "return select(2, pcall(cmsgpack.unpack, '\\193'))",
        "Bad data format in input.",
        "return select(2, pcall(cmsgpack.unpack, '\\221\\255\\255\\255\\255'))",
        "Missing bytes in input.",
        NULL,
    };

    (void)state;
    expect_all(lines);
}

static void struct_both_ways(void **state)
{
    static const char *const lines[] = {
        "return cjson.encode({struct.unpack('>I2<I2bBs', struct.pack('>I2<I2bBs', 1, 2, -3, 4, 'abc'))})",
        "[1,2,-3,4,\"abc\",11]",
        "return struct.pack('!4bi', 1, 2):byte(5) .. ' ' .. struct.size('!4bi') .. ' ' .. struct.size('!bd')",
        "2 8 16",
        "return cjson.encode({struct.unpack('Bc0', '\\3abcdef')})",
        "[\"abc\",5]",
        "return select(2, pcall(struct.unpack, 'c0', 'abc'))",
        "format 'c0' needs a previous size",
        "return select(2, pcall(struct.pack, 'I33', 1))",
        "integral size 33 is larger than limit of 32",
        "return select(2, pcall(struct.pack, '!3i', 1))",
        "alignment 3 is not a power of 2",
        "return cjson.encode({struct.unpack('i3', '\\255\\255\\255')})",
        "[-1,4]",
        NULL,
    };

    (void)state;
    expect_all(lines);
}

/* A random value, as Lua writes it. */
static void random_value(struct random *random, char *text, size_t *size, int depth)
{
    uint64_t kind = random_below(random, depth > 4 ? 4 : 6);
    unsigned count = (unsigned)random_below(random, 4);

    switch (kind) {
    case 0:
        *size += (size_t)sprintf(text + *size, "%lld",
                                 (long long)(random_u64(random) >> (random_below(random, 63) + 1)));
        break;
    case 1:
        *size += (size_t)sprintf(text + *size, "%d.5", (int)random_below(random, 1000) - 500);
        break;
    case 2:
        *size += (size_t)sprintf(text + *size, "true");
        break;
    case 3:
        *size += (size_t)sprintf(text + *size, "('\\%u'):rep(%u)", (unsigned)random_below(random, 256),
                                 (unsigned)random_below(random, 40));
        break;
    default:
        *size += (size_t)sprintf(text + *size, "{");
        for (unsigned i = 0; i < count; i++) {
            if (kind == 5)
                *size += (size_t)sprintf(text + *size, "k%u=", i);
            random_value(random, text, size, depth + 1);
            *size += (size_t)sprintf(text + *size, ",");
        }
        *size += (size_t)sprintf(text + *size, "}");
    }
}

static void random_values_come_back(void **state)
{
    struct random random;
    static char script[1 << 20];

    (void)state;
    random = test_random("random_values_come_back");
    for (unsigned i = 0; i < 300; i++) {
        size_t size = (size_t)sprintf(script,
                                      "local function same(a, b) if type(a) ~= 'table' or type(b) ~= 'table' then "
                                      "return a == b end for k, v in pairs(a) do if not same(v, b[k]) then "
                                      "return false end end for k in pairs(b) do if a[k] == nil then return false end "
                                      "end return true end local v = ");

        random_value(&random, script, &size, 0);
        strcpy(script + size, " if not same(v, cmsgpack.unpack(cmsgpack.pack(v))) then return 'cmsgpack' end "
                              "local j = cjson.encode(v) if cjson.encode(cjson.decode(j)):len() ~= j:len() then "
                              "return 'cjson ' .. j end return 'same'");
        if (strcmp(run(script), "same") != 0)
            fail_msg("%s: %s", run(script), script);
    }
}

static void memory_is_bounded_and_given_back(void **state)
{
    size_t before;

    (void)state;
    run("return 1");
    before = lua_vm_bytes(vm);
    vm->bytes_most = before + (4 << 20);
    assert_string_equal(run("local s = 'x' while true do s = s .. s end"), "not enough memory");
    assert_string_equal(run("local t = {} for i = 1, 1e8 do t[i] = {} end"), "not enough memory");
    assert_string_equal(run("return cjson.encode(('x'):rep(3000000))"), "not enough memory");
    assert_string_equal(run("return 1"), "1");
    vm->bytes_most = LUA_VM_BYTES_MOST;
    assert_true(lua_vm_bytes(vm) < before + (12 << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cjson_writes),
        cmocka_unit_test(cjson_reads),
        cmocka_unit_test(cmsgpack_both_ways),
        cmocka_unit_test(struct_both_ways),
        cmocka_unit_test(random_values_come_back),
        cmocka_unit_test(memory_is_bounded_and_given_back),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
