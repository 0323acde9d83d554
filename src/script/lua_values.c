#include "script/lua_values.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "net/resp.h"

#include <lauxlib.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#define REPLY_BYTES_MOST ((size_t)512 << 20) /* a table may be told many times in one reply, as part of itself */

/* ----------------------------------------------------------------------------------------------- replies to Lua -- */

struct reading {
    lua_State *L;
    const char *at;
    const char *end;
    int proto;
};

/* The line at hand without its type byte; goes behind it. */
static struct slice take_line(struct reading *reading)
{
    const char *start = reading->at + 1, *end;

    end = memchr(start, '\r', (size_t)(reading->end - start));
    assert(end != NULL);
    reading->at = end + 2;
    return slice_make(start, (size_t)(end - start));
}

static int64_t number_of(struct slice line)
{
    bool negative = line.size != 0 && line.data[0] == '-';
    uint64_t number = 0;

    for (size_t i = negative; i < line.size; i++)
        number = number * 10 + (uint64_t)(line.data[i] - '0');
    return (int64_t)(negative ? 0 - number : number);
}

static double double_of(struct slice line)
{
    char text[64];
    size_t size = MIN(line.size, sizeof(text) - 1);

    memcpy(text, line.data, size);
    text[size] = '\0';
    return strtod(text, NULL);
}

static void push_field(lua_State *L, const char *name, struct slice text)
{
    lua_createtable(L, 0, 1);
    lua_pushlstring(L, text.data, text.size);
    lua_setfield(L, -2, name);
}

void lua_values_push_error(lua_State *L, struct slice text)
{
    push_field(L, "err", text);
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, "ignore_error_stats_update");
}

static void push_reply(struct reading *reading);

static struct slice take_bytes(struct reading *reading, int64_t size)
{
    struct slice bytes = {reading->at, (size_t)size};

    assert(size <= reading->end - reading->at - 2);
    reading->at += size + 2;
    return bytes;
}

static void push_null(struct reading *reading)
{
    if (reading->proto == 2)
        lua_pushboolean(reading->L, 0);
    else
        lua_pushnil(reading->L);
}

static void push_bulk(struct reading *reading, int64_t size)
{
    struct slice bytes;

    if (size < 0) {
        push_null(reading);
        return;
    }
    bytes = take_bytes(reading, size);
    lua_pushlstring(reading->L, bytes.data, bytes.size);
}

static void push_array(struct reading *reading, int64_t count)
{
    if (count < 0) {
        push_null(reading);
        return;
    }
    lua_createtable(reading->L, (int)MIN(count, INT64_C(1) << 20), 0);
    for (int64_t i = 1; i <= count; i++) {
        push_reply(reading);
        lua_rawseti(reading->L, -2, (int)i);
    }
}

/* {map = {...}} or {set = {member = true}}. Nothing can be told by a key that is no value. */
static void push_keyed(struct reading *reading, int64_t count, const char *name, bool is_map)
{
    lua_State *L = reading->L;

    lua_createtable(L, 0, 1);
    lua_createtable(L, 0, (int)MIN(count, INT64_C(1) << 20));
    for (int64_t i = 0; i < count; i++) {
        push_reply(reading);
        if (is_map)
            push_reply(reading);
        else
            lua_pushboolean(L, 1);
        if (lua_isnil(L, -2) || (lua_type(L, -2) == LUA_TNUMBER && isnan(lua_tonumber(L, -2))))
            lua_pop(L, 2);
        else
            lua_rawset(L, -3);
    }
    lua_setfield(L, -2, name);
}

static void push_verbatim(struct reading *reading, int64_t size)
{
    lua_State *L = reading->L;
    struct slice bytes = take_bytes(reading, size);

    lua_createtable(L, 0, 1);
    lua_createtable(L, 0, 2);
    lua_pushlstring(L, bytes.data + 4, bytes.size - 4);
    lua_setfield(L, -2, "string");
    lua_pushlstring(L, bytes.data, 3);
    lua_setfield(L, -2, "format");
    lua_setfield(L, -2, "verbatim_string");
}

static void skip_attribute(struct reading *reading, int64_t pairs)
{
    for (int64_t i = 0; i < pairs * 2; i++) {
        push_reply(reading);
        lua_pop(reading->L, 1);
    }
    push_reply(reading);
}

static void push_reply(struct reading *reading)
{
    lua_State *L = reading->L;
    char type = *reading->at;
    struct slice line = take_line(reading);

    luaL_checkstack(L, 6, "reply nested too deeply");
    switch (type) {
    case RESP_TYPE_STATUS:
        push_field(L, "ok", line);
        break;
    case RESP_TYPE_ERROR:
        lua_values_push_error(L, line);
        break;
    case RESP_TYPE_INT:
        lua_pushnumber(L, (double)number_of(line));
        break;
    case RESP_TYPE_BULK:
        push_bulk(reading, number_of(line));
        break;
    case RESP_TYPE_ARRAY:
    case RESP_TYPE_PUSH:
        push_array(reading, number_of(line));
        break;
    case RESP_TYPE_NULL:
        push_null(reading);
        break;
    case RESP_TYPE_BOOL:
        lua_pushboolean(L, line.data[0] == 't');
        break;
    case RESP_TYPE_DOUBLE:
        lua_createtable(L, 0, 1);
        lua_pushnumber(L, double_of(line));
        lua_setfield(L, -2, "double");
        break;
    case RESP_TYPE_BIGNUM:
        push_field(L, "big_number", line);
        break;
    case RESP_TYPE_VERBATIM:
        push_verbatim(reading, number_of(line));
        break;
    case RESP_TYPE_MAP:
        push_keyed(reading, number_of(line), "map", true);
        break;
    case RESP_TYPE_SET:
        push_keyed(reading, number_of(line), "set", false);
        break;
    case RESP_TYPE_ATTRIBUTE:
        skip_attribute(reading, number_of(line));
        break;
    default:
        assert(false);
    }
}

void lua_values_push_reply(lua_State *L, struct slice bytes, int proto, bool *is_error)
{
    struct reading reading = {L, bytes.data, bytes.data + bytes.size, proto};

    const int top = lua_gettop(L);

    *is_error = bytes.data[0] == RESP_TYPE_ERROR;
    push_reply(&reading);
    assert(reading.at == reading.end);
    assert(lua_gettop(L) == top + 1);
}

/* ----------------------------------------------------------------------------------------------- Lua to replies -- */

struct writing {
    lua_State *L;
    struct output *out;
    int proto, script_proto;
    bool *failed;
    void (*count_error)(struct slice text, void *context);
    void *context;
};

static void write_value(struct writing *writing, bool outermost);

/* The integer a number is cut to, as processors do it: what does not fit is the least one. */
static int64_t integer_of(double number)
{
    return number >= -9223372036854775808.0 && number < 9223372036854775808.0 ? (int64_t)number : INT64_MIN;
}

/* Statuses and errors end at their first NUL: so they have always been taken from scripts. */
static struct slice line_of(struct slice text)
{
    const char *end = memchr(text.data, '\0', text.size);

    return end != NULL ? slice_make(text.data, (size_t)(end - text.data)) : text;
}

static void fail(struct writing *writing, struct slice text, bool counted, bool outermost)
{
    text = line_of(text);
    while (text.size != 0 && (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == '\r'))
        text.size--;
    if (outermost)
        *writing->failed = true;
    if (!counted)
        writing->count_error(text, writing->context);
    resp_write_error(writing->out, text);
}

/* Pushes the field if it has that type; false, and nothing is pushed: it has not. */
static bool push_typed(lua_State *L, const char *name, int type)
{
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    if (lua_type(L, -1) == type)
        return true;
    lua_pop(L, 1);
    return false;
}

static struct slice text_at_top(lua_State *L)
{
    struct slice text;

    text.data = lua_tolstring(L, -1, &text.size);
    return text;
}

static void write_error_field(struct writing *writing, bool outermost)
{
    lua_State *L = writing->L;
    struct slice text = text_at_top(L);
    bool counted;

    lua_pushliteral(L, "ignore_error_stats_update");
    lua_rawget(L, -3);
    counted = lua_toboolean(L, -1) != 0;
    lua_pop(L, 1);
    fail(writing, text, counted, outermost);
    lua_pop(L, 1);
}

/* The table of entries at the top, whose keys (and values) go out. */
static void write_entries(struct writing *writing, enum resp_aggregate type)
{
    lua_State *L = writing->L;
    struct resp_deferred head = resp_begin_deferred(writing->out);
    uint64_t count = 0;

    lua_pushnil(L);
    while (lua_next(L, -2) != 0) {
        if (type == RESP_SET)
            lua_pop(L, 1);
        lua_pushvalue(L, type == RESP_SET ? -1 : -2);
        write_value(writing, false);
        if (type == RESP_MAP)
            write_value(writing, false);
        count++;
    }
    resp_end_deferred(writing->out, writing->proto, head, type, count);
    lua_pop(L, 1);
}

/* Line breaks must not end a line of the protocol early. */
static void write_bignum(struct writing *writing)
{
    lua_State *L = writing->L;
    struct slice digits = text_at_top(L);
    char *copy = lua_newuserdata(L, digits.size + 1);

    for (size_t i = 0; i < digits.size; i++)
        copy[i] = digits.data[i] == '\r' || digits.data[i] == '\n' ? ' ' : digits.data[i];
    resp_write_bignum(writing->out, writing->proto, slice_make(copy, digits.size));
    lua_pop(L, 2);
}

/* {string = , format = } at the top; false: it is not that. Popped. */
static bool write_verbatim(struct writing *writing)
{
    lua_State *L = writing->L;
    char format[3] = {' ', ' ', ' '};
    struct slice text, name;

    if (!push_typed(L, "format", LUA_TSTRING)) {
        lua_pop(L, 1);
        return false;
    }
    name = text_at_top(L);
    lua_pop(L, 1);
    if (!push_typed(L, "string", LUA_TSTRING)) {
        lua_pop(L, 1);
        return false;
    }
    for (size_t i = 0; i < MIN(name.size, sizeof(format)); i++) {
        bool breaks = name.data[i] == '\r' || name.data[i] == '\n';

        format[i] = breaks ? ' ' : name.data[i];
    }
    text = text_at_top(L);
    resp_write_verbatim(writing->out, writing->proto, format, text);
    lua_pop(L, 2);
    return true;
}

static void write_array(struct writing *writing)
{
    lua_State *L = writing->L;
    struct resp_deferred head = resp_begin_deferred(writing->out);
    uint64_t count = 0;

    for (int i = 1;; i++) {
        lua_rawgeti(L, -1, i);
        if (lua_isnil(L, -1))
            break;
        write_value(writing, false);
        count++;
    }
    lua_pop(L, 1);
    resp_end_deferred(writing->out, writing->proto, head, RESP_ARRAY, count);
}

/* The table at the top, which stays: an error, a status, a value of RESP3 or an array. */
static void write_table(struct writing *writing, bool outermost)
{
    lua_State *L = writing->L;

    if (push_typed(L, "err", LUA_TSTRING)) {
        write_error_field(writing, outermost);
    } else if (push_typed(L, "ok", LUA_TSTRING)) {
        resp_write_status(writing->out, line_of(text_at_top(L)));
        lua_pop(L, 1);
    } else if (push_typed(L, "double", LUA_TNUMBER)) {
        resp_write_double(writing->out, writing->proto, lua_tonumber(L, -1));
        lua_pop(L, 1);
    } else if (push_typed(L, "map", LUA_TTABLE)) {
        write_entries(writing, RESP_MAP);
    } else if (push_typed(L, "set", LUA_TTABLE)) {
        write_entries(writing, RESP_SET);
    } else if (push_typed(L, "big_number", LUA_TSTRING)) {
        write_bignum(writing);
    } else if (!push_typed(L, "verbatim_string", LUA_TTABLE) || !write_verbatim(writing)) {
        write_array(writing);
    }
}

static void write_boolean(struct writing *writing, bool value)
{
    if (writing->script_proto >= 3)
        resp_write_bool(writing->out, writing->proto, value);
    else if (value)
        resp_write_int(writing->out, 1);
    else
        resp_write_null(writing->out, writing->proto);
}

static void write_value(struct writing *writing, bool outermost)
{
    lua_State *L = writing->L;

    if (lua_checkstack(L, 6) == 0) {
        fail(writing, SLICE("ERR reached lua stack limit"), false, outermost);
        lua_pop(L, 1);
        return;
    }
    if (output_size(writing->out) > REPLY_BYTES_MOST)
        luaL_error(L, "reply of more than %d bytes", (int)REPLY_BYTES_MOST);
    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        resp_write_bulk(writing->out, text_at_top(L));
        break;
    case LUA_TNUMBER:
        resp_write_int(writing->out, integer_of(lua_tonumber(L, -1)));
        break;
    case LUA_TBOOLEAN:
        write_boolean(writing, lua_toboolean(L, -1) != 0);
        break;
    case LUA_TTABLE:
        write_table(writing, outermost);
        break;
    default:
        resp_write_null(writing->out, writing->proto);
    }
    lua_pop(L, 1);
}

void lua_values_write(lua_State *L, struct output *out, int proto, int script_proto, bool *failed,
                      void (*count_error)(struct slice text, void *context), void *context)
{
    struct writing writing = {L, out, proto, script_proto, failed, count_error, context};

    const int top = lua_gettop(L);

    write_value(&writing, true);
    assert(lua_gettop(L) == top - 1);
}
