#include "script/debug_values.h"

#include "base/compiler.h"
#include "net/resp.h"

#include <stdio.h>

enum { DEPTH_MOST = 10 };

/* In quotes, with escapes for what cannot be seen. */
static void append_quoted(struct buffer *text, struct slice bytes)
{
    static const char plain[] = "\\\"\n\r\t\a\b", escaped[] = "\\\"nrtab";

    buffer_append_text(text, "\"");
    for (size_t i = 0; i < bytes.size; i++) {
        unsigned char c = (unsigned char)bytes.data[i];
        const char *found = c != '\0' ? strchr(plain, c) : NULL;

        if (found != NULL)
            buffer_printf(text, "\\%c", escaped[found - plain]);
        else if (c >= ' ' && c < 0x7f)
            buffer_append(text, bytes.data + i, 1);
        else
            buffer_printf(text, "\\x%02x", c);
    }
    buffer_append_text(text, "\"");
}

/* --- Lua --- */

/* Its keys are 1, 2, 3 ..., in this order. */
static bool is_array(lua_State *L, int index)
{
    double next = 1;
    bool fine = true;

    lua_pushnil(L);
    while (fine && lua_next(L, index) != 0) {
        lua_pop(L, 1);
        fine = lua_type(L, -1) == LUA_TNUMBER && lua_tonumber(L, -1) == next++;
    }
    if (!fine)
        lua_pop(L, 1);
    return fine;
}

static void append_value(struct buffer *text, lua_State *L, int index, int depth);

static void append_table(struct buffer *text, lua_State *L, int index, int depth)
{
    bool array = is_array(L, index), more = false;

    buffer_append_text(text, "{");
    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
        int top = lua_gettop(L);

        if (more)
            buffer_append_text(text, "; ");
        more = true;
        if (!array) {
            buffer_append_text(text, "[");
            append_value(text, L, top - 1, depth);
            buffer_append_text(text, "]=");
        }
        append_value(text, L, top, depth);
        lua_pop(L, 1);
    }
    buffer_append_text(text, "}");
}

static void append_value(struct buffer *text, lua_State *L, int index, int depth)
{
    struct slice bytes;

    switch (lua_type(L, index)) {
    case LUA_TNIL:
        buffer_append_text(text, "nil");
        break;
    case LUA_TBOOLEAN:
        buffer_append_text(text, lua_toboolean(L, index) ? "true" : "false");
        break;
    case LUA_TNUMBER:
        buffer_printf(text, "%g", lua_tonumber(L, index));
        break;
    case LUA_TSTRING:
        bytes.data = lua_tolstring(L, index, &bytes.size);
        append_quoted(text, bytes);
        break;
    case LUA_TTABLE:
        if (depth == DEPTH_MOST || lua_checkstack(L, 4) == 0)
            buffer_append_text(text, "<max recursion level reached! Nested table?>");
        else
            append_table(text, L, index, depth + 1);
        break;
    default:
        buffer_printf(text, "\"%s@%p\"", lua_typename(L, lua_type(L, index)), lua_topointer(L, index));
    }
}

void debug_append_value(struct buffer *text, lua_State *L, int index)
{
    append_value(text, L, index < 0 ? lua_gettop(L) + index + 1 : index, 0);
}

/* --- replies --- */

static void append_reply(struct buffer *text, const struct resp_reply *reply);

static void append_elements(struct buffer *text, const struct resp_reply *reply, const char *open, const char *close)
{
    const bool pairs = reply->type == RESP_TYPE_MAP;

    buffer_append_text(text, open);
    for (size_t i = 0; i < reply->element_count; i++) {
        if (i != 0)
            buffer_append_text(text, pairs && i % 2 != 0 ? " => " : ",");
        append_reply(text, reply->elements[i]);
    }
    buffer_append_text(text, close);
}

static void append_reply(struct buffer *text, const struct resp_reply *reply)
{
    struct buffer line = {0};

    switch (reply->type) {
    case RESP_TYPE_STATUS:
    case RESP_TYPE_ERROR:
        buffer_append_text(&line, reply->type == RESP_TYPE_STATUS ? "+" : "-");
        buffer_append(&line, reply->text, reply->size);
        append_quoted(text, buffer_slice(&line));
        break;
    case RESP_TYPE_INT:
        buffer_printf(text, "%lld", (long long)reply->integer);
        break;
    case RESP_TYPE_NULL:
        buffer_append_text(text, reply->was == RESP_TYPE_NULL ? "(null)" : "NULL");
        break;
    case RESP_TYPE_BOOL:
        buffer_append_text(text, reply->integer != 0 ? "#true" : "#false");
        break;
    case RESP_TYPE_DOUBLE:
    case RESP_TYPE_BIGNUM:
        buffer_append_text(text, reply->type == RESP_TYPE_DOUBLE ? "(double) " : "");
        buffer_append(text, reply->text, reply->size);
        break;
    case RESP_TYPE_ARRAY:
    case RESP_TYPE_PUSH:
        append_elements(text, reply, "[", "]");
        break;
    case RESP_TYPE_MAP:
        append_elements(text, reply, "{", "}");
        break;
    case RESP_TYPE_SET:
        append_elements(text, reply, "~(", ")");
        break;
    default:
        append_quoted(text, slice_make(reply->text, reply->size));
    }
    buffer_fini(&line);
}

void debug_append_reply(struct buffer *text, struct slice bytes)
{
    struct resp_reply_parser parser;
    struct resp_reply *reply = NULL;
    size_t consumed = 0;

    resp_reply_parser_init(&parser);
    if (resp_reply_parse(&parser, bytes.data, bytes.size, &consumed, &reply) == RESP_REPLY_READY)
        append_reply(text, reply);
    resp_reply_destroy(&reply);
    resp_reply_parser_fini(&parser);
}
