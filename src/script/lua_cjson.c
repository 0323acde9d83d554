/* Nesting is bounded twice: by the depth a script may choose, and by what lua_checkstack grants, so that neither the
 * stack of Lua nor that of C overflows whatever a script chooses. */
#include "script/lua_cjson.h"

#include "base/compiler.h"
#include "script/lua_bytes.h"

#include <lauxlib.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_USUAL = 1000, PRECISION_USUAL = 14, PRECISION_MOST = 14, SPARSE_RATIO_USUAL = 2, SPARSE_SAFE_USUAL = 10 };

void lua_cjson_reset(struct cjson_options *options)
{
    *options = (struct cjson_options){.encode_depth = DEPTH_USUAL,
                                      .decode_depth = DEPTH_USUAL,
                                      .precision = PRECISION_USUAL,
                                      .sparse_ratio = SPARSE_RATIO_USUAL,
                                      .sparse_safe = SPARSE_SAFE_USUAL,
                                      .keep_buffer = true,
                                      .decode_invalid = true,
                                      .encode_invalid = CJSON_INVALID_REFUSED};
}

static struct cjson_options *options_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* ----------------------------------------------------------------------------------------------------- encoding -- */

struct encoder {
    struct lua_bytes bytes;
    const struct cjson_options *options;
};

static void encode_value(struct encoder *encoder, int depth);

static void refuse_type(lua_State *L, int index, const char *why)
{
    luaL_error(L, "Cannot serialise %s: %s", lua_typename(L, lua_type(L, index)), why);
}

static void encode_string(struct encoder *encoder, int index)
{
    static const char short_escapes[] = "\"\"\\\\//\bb\ff\nn\rr\tt";
    size_t size;
    const char *text = lua_tolstring(encoder->bytes.L, index, &size);

    lua_bytes_append_char(&encoder->bytes, '"');
    for (size_t i = 0, start = 0; i <= size; i++) {
        const char *escape = NULL;
        unsigned char c = i < size ? (unsigned char)text[i] : 0;

        if (i < size && c >= ' ' && c != '"' && c != '\\' && c != '/' && c != 0x7f)
            continue;
        lua_bytes_append(&encoder->bytes, text + start, i - start);
        start = i + 1;
        if (i == size)
            break;
        for (const char *at = short_escapes; *at != '\0' && escape == NULL; at += 2)
            escape = (unsigned char)*at == c ? at + 1 : NULL;
        if (escape != NULL) {
            char *room = lua_bytes_reserve(&encoder->bytes, 2);

            room[0] = '\\';
            room[1] = *escape;
            encoder->bytes.size += 2;
        } else {
            encoder->bytes.size += (size_t)snprintf(lua_bytes_reserve(&encoder->bytes, 7), 7, "\\u%04x", c);
        }
    }
    lua_bytes_append_char(&encoder->bytes, '"');
}

static void encode_number(struct encoder *encoder, int index)
{
    double number = lua_tonumber(encoder->bytes.L, index);
    char text[64];
    int size;

    if (LIKELY(isfinite(number))) {
        size = snprintf(text, sizeof(text), "%.*g", encoder->options->precision, number);
    } else if (encoder->options->encode_invalid == CJSON_INVALID_REFUSED) {
        refuse_type(encoder->bytes.L, index, "must not be NaN or Inf");
        return;
    } else if (encoder->options->encode_invalid == CJSON_INVALID_NULL) {
        size = snprintf(text, sizeof(text), "null");
    } else {
        size = snprintf(text, sizeof(text), "%s", isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
    }
    lua_bytes_append(&encoder->bytes, text, (size_t)size);
}

/* How long the table at the top is as an array; -1: it is an object. */
static int array_size(struct encoder *encoder)
{
    lua_State *L = encoder->bytes.L;
    const struct cjson_options *options = encoder->options;
    double largest = 0, count = 0;

    lua_pushnil(L);
    while (lua_next(L, -2) != 0) {
        double key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;

        lua_pop(L, 1);
        if (!(key >= 1) || floor(key) != key || key > INT32_MAX) {
            lua_pop(L, 1);
            return -1;
        }
        largest = MAX(largest, key);
        count++;
    }
    if (options->sparse_ratio > 0 && largest > count * options->sparse_ratio && largest > options->sparse_safe) {
        if (!options->sparse_convert)
            refuse_type(L, -1, "excessively sparse array");
        return -1;
    }
    return (int)largest;
}

static void encode_array(struct encoder *encoder, int size, int depth)
{
    lua_State *L = encoder->bytes.L;

    lua_bytes_append_char(&encoder->bytes, '[');
    for (int i = 1; i <= size; i++) {
        if (i > 1)
            lua_bytes_append_char(&encoder->bytes, ',');
        lua_rawgeti(L, -1, i);
        encode_value(encoder, depth);
        lua_pop(L, 1);
    }
    lua_bytes_append_char(&encoder->bytes, ']');
}

static void encode_object(struct encoder *encoder, int depth)
{
    lua_State *L = encoder->bytes.L;
    bool more = false;

    lua_bytes_append_char(&encoder->bytes, '{');
    lua_pushnil(L);
    while (lua_next(L, -2) != 0) {
        if (more)
            lua_bytes_append_char(&encoder->bytes, ',');
        more = true;
        if (lua_type(L, -2) == LUA_TSTRING) {
            encode_string(encoder, -2);
        } else if (lua_type(L, -2) == LUA_TNUMBER) {
            lua_bytes_append_char(&encoder->bytes, '"');
            encode_number(encoder, -2);
            lua_bytes_append_char(&encoder->bytes, '"');
        } else {
            refuse_type(L, -2, "table key must be a number or string");
        }
        lua_bytes_append_char(&encoder->bytes, ':');
        encode_value(encoder, depth);
        lua_pop(L, 1);
    }
    lua_bytes_append_char(&encoder->bytes, '}');
}

/* The value at the top, which stays. */
static void encode_value(struct encoder *encoder, int depth)
{
    lua_State *L = encoder->bytes.L;
    int size;

    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        encode_string(encoder, -1);
        return;
    case LUA_TNUMBER:
        encode_number(encoder, -1);
        return;
    case LUA_TBOOLEAN:
        lua_toboolean(L, -1) ? lua_bytes_append(&encoder->bytes, "true", 4)
                             : lua_bytes_append(&encoder->bytes, "false", 5);
        return;
    case LUA_TNIL:
        lua_bytes_append(&encoder->bytes, "null", 4);
        return;
    case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(L, -1) == NULL) {
            lua_bytes_append(&encoder->bytes, "null", 4);
            return;
        }
        break;
    case LUA_TTABLE:
        if (++depth > encoder->options->encode_depth || lua_checkstack(L, 4) == 0)
            luaL_error(L, "Cannot serialise, excessive nesting (%d)", depth);
        size = array_size(encoder);
        if (size > 0)
            encode_array(encoder, size, depth);
        else
            encode_object(encoder, depth);
        return;
    default:
        break;
    }
    refuse_type(L, -1, "type not supported");
}

static int cjson_encode(lua_State *L)
{
    struct encoder encoder = {.options = options_of(L)};

    luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
    lua_bytes_init(&encoder.bytes, L);
    lua_pushvalue(L, 1);
    encode_value(&encoder, 0);
    lua_bytes_push(&encoder.bytes);
    return 1;
}

/* ----------------------------------------------------------------------------------------------------- decoding -- */

enum token {
    TOKEN_OBJECT_BEGIN,
    TOKEN_OBJECT_END,
    TOKEN_ARRAY_BEGIN,
    TOKEN_ARRAY_END,
    TOKEN_COLON,
    TOKEN_COMMA,
    TOKEN_STRING,
    TOKEN_NUMBER,
    TOKEN_TRUE,
    TOKEN_FALSE,
    TOKEN_NULL,
    TOKEN_END,
    TOKEN_ERROR
};

struct decoder {
    lua_State *L;
    const struct cjson_options *options;
    const char *text;      /* a zero byte follows it */
    size_t size, position; /* of the text behind the token */
    enum token token;
    size_t token_position;
    const char *problem; /* TOKEN_ERROR: the reason */
    double number;
    struct lua_bytes bytes; /* of a string with escapes */
    size_t string_start, string_size;
    bool string_in_bytes;
};

static const char *token_name(const struct decoder *decoder)
{
    static const char *const names[] = {"T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END", "T_COLON", "T_COMMA",
                                        "T_STRING",    "T_NUMBER",  "T_BOOLEAN",   "T_BOOLEAN", "T_NULL",  "T_END"};

    return decoder->token == TOKEN_ERROR ? decoder->problem : names[decoder->token];
}

static void fail(struct decoder *decoder, const char *expected)
{
    luaL_error(decoder->L, "Expected %s but found %s at character %d", expected, token_name(decoder),
               (int)(decoder->token_position + 1));
}

static void set_problem(struct decoder *decoder, size_t position, const char *problem)
{
    decoder->token = TOKEN_ERROR;
    decoder->token_position = position;
    decoder->problem = problem;
}

/* Four hexadecimal digits at `at`; -1: they are not. */
static int hex4(const struct decoder *decoder, size_t at)
{
    int code = 0;

    if (decoder->size - at < 4)
        return -1;
    for (size_t i = at; i < at + 4; i++) {
        char c = decoder->text[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;

        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

static void append_utf8(struct lua_bytes *bytes, uint32_t code)
{
    if (code < 0x80) {
        lua_bytes_append_char(bytes, (char)code);
        return;
    }
    if (code < 0x800) {
        lua_bytes_append_char(bytes, (char)(0xc0 | code >> 6));
    } else {
        if (code < 0x10000) {
            lua_bytes_append_char(bytes, (char)(0xe0 | code >> 12));
        } else {
            lua_bytes_append_char(bytes, (char)(0xf0 | code >> 18));
            lua_bytes_append_char(bytes, (char)(0x80 | (code >> 12 & 0x3f)));
        }
        lua_bytes_append_char(bytes, (char)(0x80 | (code >> 6 & 0x3f)));
    }
    lua_bytes_append_char(bytes, (char)(0x80 | (code & 0x3f)));
}

/* The escape whose 'u' is at `at`: returns the position behind it, 0 if it is invalid. */
static size_t read_unicode(struct decoder *decoder, size_t at)
{
    int code = hex4(decoder, at + 1), low;

    if (code < 0 || (code >= 0xdc00 && code < 0xe000))
        return 0;
    at += 5;
    if (code >= 0xd800 && code < 0xdc00) {
        if (decoder->size - at < 6 || decoder->text[at] != '\\' || decoder->text[at + 1] != 'u')
            return 0;
        low = hex4(decoder, at + 2);
        if (low < 0xdc00 || low >= 0xe000)
            return 0;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
    }
    append_utf8(&decoder->bytes, (uint32_t)code);
    return at;
}

/* The escape whose backslash is at `at`: returns the position behind it, 0 after set_problem. */
static size_t read_escape(struct decoder *decoder, size_t at)
{
    static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    char c = at + 1 < decoder->size ? decoder->text[at + 1] : '\0';
    size_t behind;

    if (c == 'u') {
        behind = read_unicode(decoder, at + 1);
        if (behind == 0)
            set_problem(decoder, at, "invalid unicode escape code");
        return behind;
    }
    for (const char *escape = escapes; *escape != '\0'; escape += 2) {
        if (*escape == c && c != '\0') {
            lua_bytes_append_char(&decoder->bytes, escape[1]);
            return at + 2;
        }
    }
    set_problem(decoder, at, "invalid escape code");
    return 0;
}

/* Reads the string whose first quote is at `at`. */
static void read_string(struct decoder *decoder, size_t at)
{
    size_t start = at + 1;

    decoder->string_in_bytes = false;
    decoder->bytes.size = 0;
    for (at = start;;) {
        if (at >= decoder->size) {
            set_problem(decoder, at, "unexpected end of string");
            return;
        }
        if (decoder->text[at] == '"')
            break;
        if (decoder->text[at] != '\\') {
            at++;
            continue;
        }
        decoder->string_in_bytes = true;
        lua_bytes_append(&decoder->bytes, decoder->text + start, at - start);
        at = read_escape(decoder, at);
        if (at == 0)
            return;
        start = at;
    }
    if (decoder->string_in_bytes)
        lua_bytes_append(&decoder->bytes, decoder->text + start, at - start);
    decoder->string_start = start;
    decoder->string_size = at - start;
    decoder->position = at + 1;
    decoder->token = TOKEN_STRING;
}

static void push_string(struct decoder *decoder)
{
    if (decoder->string_in_bytes)
        lua_bytes_push(&decoder->bytes);
    else
        lua_pushlstring(decoder->L, decoder->text + decoder->string_start, decoder->string_size);
}

/* Numbers that JSON does not know: hexadecimal, infinite, with a plus or with leading zeros. */
static bool is_loose_number(const char *text)
{
    if (*text == '+')
        return true;
    text += *text == '-';
    if (*text == '0')
        return (text[1] | 32) == 'x' || (text[1] >= '0' && text[1] <= '9');
    return *text < '0' || *text > '9';
}

static void read_number(struct decoder *decoder, size_t at)
{
    char *end;

    if (!decoder->options->decode_invalid && is_loose_number(decoder->text + at)) {
        set_problem(decoder, at, "invalid number");
        return;
    }
    decoder->number = strtod(decoder->text + at, &end);
    if (end == decoder->text + at) {
        set_problem(decoder, at, "invalid number");
        return;
    }
    decoder->token = TOKEN_NUMBER;
    decoder->position = (size_t)(end - decoder->text);
}

static bool read_word(struct decoder *decoder, size_t at, const char *word, enum token token)
{
    size_t size = strlen(word);

    if (decoder->size - at < size || memcmp(decoder->text + at, word, size) != 0)
        return false;
    decoder->token = token;
    decoder->position = at + size;
    return true;
}

static void read_letters(struct decoder *decoder, size_t at)
{
    char c = (char)(decoder->text[at] | 32);

    if (read_word(decoder, at, "true", TOKEN_TRUE) || read_word(decoder, at, "false", TOKEN_FALSE) ||
        read_word(decoder, at, "null", TOKEN_NULL))
        return;
    if (decoder->options->decode_invalid && (c == 'i' || c == 'n'))
        read_number(decoder, at);
    else
        decoder->token = TOKEN_ERROR;
    if (decoder->token == TOKEN_ERROR)
        set_problem(decoder, at, "invalid token");
}

static void next_token(struct decoder *decoder)
{
    static const char signs[] = "{}[]:,";
    size_t at = decoder->position;
    const char *sign;
    char c;

    while (at < decoder->size && memchr(" \t\n\r", decoder->text[at], 4) != NULL)
        at++;
    decoder->token_position = at;
    c = at < decoder->size ? decoder->text[at] : '\0';
    if (c == '\0') {
        decoder->token = TOKEN_END;
        return;
    }
    sign = memchr(signs, c, 6);
    if (sign != NULL) {
        decoder->token = (enum token)(sign - signs);
        decoder->position = at + 1;
    } else if (c == '"') {
        read_string(decoder, at);
    } else if (c == '-' || c == '+' || (c >= '0' && c <= '9')) {
        read_number(decoder, at);
    } else if ((c | 32) >= 'a' && (c | 32) <= 'z') {
        read_letters(decoder, at);
    } else {
        set_problem(decoder, at, "invalid token");
    }
}

static void decode_value(struct decoder *decoder, int depth);

static void descend(struct decoder *decoder, int depth)
{
    if (depth > decoder->options->decode_depth || lua_checkstack(decoder->L, 4) == 0)
        luaL_error(decoder->L, "Found too many nested data structures (%d) at character %d", depth,
                   (int)decoder->position);
}

static void decode_object(struct decoder *decoder, int depth)
{
    lua_State *L = decoder->L;

    descend(decoder, depth);
    lua_newtable(L);
    next_token(decoder);
    if (decoder->token == TOKEN_OBJECT_END)
        return;
    for (;;) {
        if (decoder->token != TOKEN_STRING)
            fail(decoder, "object key string");
        push_string(decoder);
        next_token(decoder);
        if (decoder->token != TOKEN_COLON)
            fail(decoder, "colon");
        next_token(decoder);
        decode_value(decoder, depth);
        lua_rawset(L, -3);
        next_token(decoder);
        if (decoder->token == TOKEN_OBJECT_END)
            return;
        if (decoder->token != TOKEN_COMMA)
            fail(decoder, "comma or object end");
        next_token(decoder);
    }
}

static void decode_array(struct decoder *decoder, int depth)
{
    lua_State *L = decoder->L;

    descend(decoder, depth);
    lua_newtable(L);
    next_token(decoder);
    if (decoder->token == TOKEN_ARRAY_END)
        return;
    for (int i = 1;; i++) {
        decode_value(decoder, depth);
        lua_rawseti(L, -2, i);
        next_token(decoder);
        if (decoder->token == TOKEN_ARRAY_END)
            return;
        if (decoder->token != TOKEN_COMMA)
            fail(decoder, "comma or array end");
        next_token(decoder);
    }
}

/* Pushes the value that begins with the token at hand. */
static void decode_value(struct decoder *decoder, int depth)
{
    switch (decoder->token) {
    case TOKEN_STRING:
        push_string(decoder);
        break;
    case TOKEN_NUMBER:
        lua_pushnumber(decoder->L, decoder->number);
        break;
    case TOKEN_TRUE:
    case TOKEN_FALSE:
        lua_pushboolean(decoder->L, decoder->token == TOKEN_TRUE);
        break;
    case TOKEN_NULL:
        lua_pushlightuserdata(decoder->L, NULL);
        break;
    case TOKEN_OBJECT_BEGIN:
        decode_object(decoder, depth + 1);
        break;
    case TOKEN_ARRAY_BEGIN:
        decode_array(decoder, depth + 1);
        break;
    default:
        fail(decoder, "value");
    }
}

static int cjson_decode(lua_State *L)
{
    struct decoder decoder = {.L = L, .options = options_of(L)};

    luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
    decoder.text = luaL_checklstring(L, 1, &decoder.size);
    if (decoder.size >= 2 && (decoder.text[0] == '\0' || decoder.text[1] == '\0'))
        luaL_error(L, "JSON parser does not support UTF-16 or UTF-32");
    lua_bytes_init(&decoder.bytes, L);
    next_token(&decoder);
    decode_value(&decoder, 0);
    next_token(&decoder);
    if (decoder.token != TOKEN_END)
        fail(&decoder, "the end");
    return 1;
}

/* ------------------------------------------------------------------------------------------------------ options -- */

/* A function that sets at most so many options got no more arguments than that. */
static void check_count(lua_State *L, int most)
{
    luaL_argcheck(L, lua_gettop(L) <= most, most + 1, "found too many arguments");
    options_of(L)->changed |= lua_gettop(L) > 0;
    lua_settop(L, most);
}

static void int_option(lua_State *L, int index, int *option, int least, int most)
{
    if (!lua_isnil(L, index)) {
        double number = luaL_checknumber(L, index);
        char problem[64];

        snprintf(problem, sizeof(problem), "expected integer between %d and %d", least, most);
        luaL_argcheck(L, number >= least && number <= most, index, problem);
        *option = (int)number;
    }
    lua_pushinteger(L, *option);
}

static void bool_option(lua_State *L, int index, bool *option)
{
    static const char *const words[] = {"off", "on", NULL};

    if (lua_isboolean(L, index))
        *option = lua_toboolean(L, index) != 0;
    else if (!lua_isnil(L, index))
        *option = luaL_checkoption(L, index, NULL, words) != 0;
    lua_pushboolean(L, *option);
}

static int cjson_encode_max_depth(lua_State *L)
{
    check_count(L, 1);
    int_option(L, 1, &options_of(L)->encode_depth, 1, INT32_MAX);
    return 1;
}

static int cjson_decode_max_depth(lua_State *L)
{
    check_count(L, 1);
    int_option(L, 1, &options_of(L)->decode_depth, 1, INT32_MAX);
    return 1;
}

static int cjson_encode_number_precision(lua_State *L)
{
    check_count(L, 1);
    int_option(L, 1, &options_of(L)->precision, 1, PRECISION_MOST);
    return 1;
}

static int cjson_encode_keep_buffer(lua_State *L)
{
    check_count(L, 1);
    bool_option(L, 1, &options_of(L)->keep_buffer);
    return 1;
}

static int cjson_encode_sparse_array(lua_State *L)
{
    struct cjson_options *options = options_of(L);

    check_count(L, 3);
    bool_option(L, 1, &options->sparse_convert);
    int_option(L, 2, &options->sparse_ratio, 0, INT32_MAX);
    int_option(L, 3, &options->sparse_safe, 0, INT32_MAX);
    return 3;
}

static int cjson_encode_invalid_numbers(lua_State *L)
{
    static const char *const words[] = {"off", "on", "null", NULL};
    struct cjson_options *options = options_of(L);

    check_count(L, 1);
    if (lua_isboolean(L, 1))
        options->encode_invalid = lua_toboolean(L, 1) ? CJSON_INVALID_PRINTED : CJSON_INVALID_REFUSED;
    else if (!lua_isnil(L, 1))
        options->encode_invalid = (enum cjson_invalid)luaL_checkoption(L, 1, NULL, words);
    if (options->encode_invalid == CJSON_INVALID_NULL)
        lua_pushliteral(L, "null");
    else
        lua_pushboolean(L, options->encode_invalid == CJSON_INVALID_PRINTED);
    return 1;
}

static int cjson_decode_invalid_numbers(lua_State *L)
{
    check_count(L, 1);
    bool_option(L, 1, &options_of(L)->decode_invalid);
    return 1;
}

static int cjson_new(lua_State *L)
{
    struct cjson_options *options;

    lua_cjson_open(L, &options);
    return 1;
}

void lua_cjson_open(lua_State *L, struct cjson_options **options)
{
    static const luaL_Reg functions[] = {
        {"encode", cjson_encode},
        {"decode", cjson_decode},
        {"encode_sparse_array", cjson_encode_sparse_array},
        {"encode_max_depth", cjson_encode_max_depth},
        {"decode_max_depth", cjson_decode_max_depth},
        {"encode_number_precision", cjson_encode_number_precision},
        {"encode_keep_buffer", cjson_encode_keep_buffer},
        {"encode_invalid_numbers", cjson_encode_invalid_numbers},
        {"decode_invalid_numbers", cjson_decode_invalid_numbers},
        {"new", cjson_new},
    };

    luaL_checkstack(L, 4, "no room for a library");
    lua_newtable(L);
    *options = lua_newuserdata(L, sizeof(struct cjson_options));
    lua_cjson_reset(*options);
    for (size_t i = 0; i < countof(functions); i++) {
        lua_pushvalue(L, -1);
        lua_pushcclosure(L, functions[i].func, 1);
        lua_setfield(L, -3, functions[i].name);
    }
    lua_pop(L, 1);
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    lua_pushliteral(L, "cjson");
    lua_setfield(L, -2, "_NAME");
    lua_pushliteral(L, "2.1.0");
    lua_setfield(L, -2, "_VERSION");
}
