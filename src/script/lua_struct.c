/* A format is a row of options:
 *     <  >  !n       little endian (as we begin), big endian, alignment up to n (1 ... 2^k; without n: 8)
 *     b B h H l L T  integers of 1, 2, 8, 8 bytes; capitals unsigned
 *     in In          integers of n bytes (4 unless given)
 *     f d            float, double
 *     s              a string up to a zero byte
 *     cn             n bytes (1 unless given); c0: when packing the whole string, when unpacking as many as the value
 *                    before it says
 *     x              a byte to skip; blanks mean nothing */
#include "script/lua_struct.h"

#include "base/compiler.h"
#include "script/lua_bytes.h"

#include <lauxlib.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { INTEGER_BYTES_MOST = 32, ALIGN_USUAL = 8 };

struct format {
    lua_State *L;
    const char *at; /* the unread rest; ends with a zero byte */
    bool big;
    size_t align;
    /* The option at hand. */
    char option;
    size_t size;    /* of its value; c0, s: 0 */
    size_t padding; /* before it */
};

static struct format format_begin(lua_State *L, int index)
{
    return (struct format){.L = L, .at = luaL_checkstring(L, index), .align = 1};
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The number at hand, if there is one. */
static size_t read_size(struct format *format, size_t missing)
{
    size_t number = 0;

    if (!is_digit(*format->at))
        return missing;
    for (; is_digit(*format->at); format->at++) {
        unsigned digit = (unsigned)(*format->at - '0');

        if (number > (INT_MAX - digit) / 10)
            luaL_error(format->L, "integral size overflow");
        number = number * 10 + digit;
    }
    return number;
}

static size_t integer_size(struct format *format)
{
    size_t size = read_size(format, sizeof(int));

    if (size > INTEGER_BYTES_MOST)
        luaL_error(format->L, "integral size %d is larger than limit of %d", (int)size, INTEGER_BYTES_MOST);
    return size;
}

/* How large the option's value is. */
static size_t option_size(struct format *format)
{
    switch (format->option) {
    case 'b':
    case 'B':
    case 'x':
        return 1;
    case 'h':
    case 'H':
        return sizeof(short);
    case 'l':
    case 'L':
    case 'T':
        return sizeof(long);
    case 'f':
        return sizeof(float);
    case 'd':
        return sizeof(double);
    case 'i':
    case 'I':
        return integer_size(format);
    case 'c':
        return read_size(format, 1);
    default:
        return 0;
    }
}

static void set_align(struct format *format)
{
    size_t align = read_size(format, ALIGN_USUAL);

    if (align == 0 || (align & (align - 1)) != 0)
        luaL_error(format->L, "alignment %d is not a power of 2", (int)align);
    format->align = align;
}

/* Reads up to the next option with a value; `position` is that of the value. False: the end. Unknown options are
 * returned, too. */
static bool next_option(struct format *format, size_t position)
{
    size_t align;

    for (;;) {
        format->option = *format->at;
        if (format->option == '\0')
            return false;
        format->at++;
        if (format->option == '<' || format->option == '>')
            format->big = format->option == '>';
        else if (format->option == '!')
            set_align(format);
        else if (format->option != ' ')
            break;
    }
    format->size = option_size(format);
    align = MIN(format->size, format->align);
    format->padding = 0;
    if (align > 1 && format->option != 'c')
        format->padding = (align - position % align) % align; /* sizes need not be powers of 2 */
    return true;
}

static void refuse_option(struct format *format)
{
    luaL_argerror(format->L, 1, lua_pushfstring(format->L, "invalid format option '%c'", format->option));
}

/* ------------------------------------------------------------------------------------------------------ packing -- */

/* A number that does not fit gives the result of the processor's conversion. */
static uint64_t integer_of(double number)
{
    if (number != number || number < -9223372036854775808.0)
        return UINT64_C(1) << 63;
    if (number >= 18446744073709551616.0)
        return 0;
    return number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number;
}

static void pack_integer(const struct format *format, struct lua_bytes *bytes, uint64_t number)
{
    char *at = lua_bytes_reserve(bytes, INTEGER_BYTES_MOST);

    for (size_t i = 0; i < format->size; i++) {
        char byte = (char)(i < 8 ? number >> 8 * i & 0xff : 0);

        at[format->big ? format->size - 1 - i : i] = byte;
    }
    bytes->size += format->size;
}

static void pack_float(const struct format *format, struct lua_bytes *bytes, double number)
{
    float narrow = (float)number;
    uint64_t bits = 0;
    uint32_t bits32;

    if (format->size == sizeof(float)) {
        memcpy(&bits32, &narrow, sizeof(bits32));
        bits = bits32;
    } else {
        memcpy(&bits, &number, sizeof(bits));
    }
    pack_integer(format, bytes, bits);
}

static void pack_string(const struct format *format, struct lua_bytes *bytes, int index)
{
    size_t size;
    const char *text = luaL_checklstring(format->L, index, &size);

    if (format->option == 'c' && format->size != 0) {
        luaL_argcheck(format->L, size >= format->size, index + 1, "string too short"); /* as it always was numbered */
        size = format->size;
    }
    lua_bytes_append(bytes, text, size);
    if (format->option == 's')
        lua_bytes_append_char(bytes, '\0');
}

/* One value; the result is a byte for each to skip and for padding. */
static void pack_value(struct format *format, struct lua_bytes *bytes, int index)
{
    switch (format->option) {
    case 'b':
    case 'B':
    case 'h':
    case 'H':
    case 'l':
    case 'L':
    case 'T':
    case 'i':
    case 'I':
        pack_integer(format, bytes, integer_of(luaL_checknumber(format->L, index)));
        break;
    case 'f':
    case 'd':
        pack_float(format, bytes, luaL_checknumber(format->L, index));
        break;
    case 'c':
    case 's':
        pack_string(format, bytes, index);
        break;
    default:
        refuse_option(format);
    }
}

static int struct_pack(lua_State *L)
{
    struct format format = format_begin(L, 1);
    int index = 2, count = lua_gettop(L);
    struct lua_bytes bytes;

    lua_pushnil(L); /* the value of a missing argument */
    lua_bytes_init(&bytes, L);
    luaL_checkstack(L, 4, "no room for values");
    while (next_option(&format, bytes.size)) {
        for (size_t i = 0; i < format.padding; i++)
            lua_bytes_append_char(&bytes, '\0');
        if (format.option == 'x')
            lua_bytes_append_char(&bytes, '\0');
        else
            pack_value(&format, &bytes, MIN(index, count + 1)), index++;
    }
    lua_bytes_push(&bytes);
    return 1;
}

/* ---------------------------------------------------------------------------------------------------- unpacking -- */

static uint64_t read_integer(const struct format *format, const char *at)
{
    uint64_t number = 0;

    for (size_t i = 0; i < MIN(format->size, (size_t)8); i++)
        number |= (uint64_t)(unsigned char)at[format->big ? format->size - 1 - i : i] << 8 * i;
    return number;
}

static double integer_value(const struct format *format, const char *at)
{
    uint64_t number = read_integer(format, at);
    unsigned shift = format->size < 8 ? 64 - 8 * (unsigned)format->size : 0;

    if (format->option >= 'A' && format->option <= 'Z')
        return (double)number;
    return format->size == 0 ? 0 : (double)((int64_t)(number << shift) >> shift);
}

static double float_value(const struct format *format, const char *at)
{
    uint64_t bits = read_integer(format, at);
    uint32_t bits32 = (uint32_t)bits;
    double number;
    float narrow;

    if (format->size == sizeof(float)) {
        memcpy(&narrow, &bits32, sizeof(narrow));
        return (double)narrow;
    }
    memcpy(&number, &bits, sizeof(number));
    return number;
}

static void need(lua_State *L, bool there)
{
    luaL_argcheck(L, there, 2, "data string too short");
}

/* c0: the value before it says how many bytes, and goes. */
static size_t size_before(lua_State *L, int first)
{
    double size;

    if (lua_gettop(L) < first || lua_type(L, -1) != LUA_TNUMBER)
        luaL_error(L, "format 'c0' needs a previous size");
    size = lua_tonumber(L, -1);
    lua_pop(L, 1);
    need(L, size >= 0 && size <= (double)LUA_BYTES_MOST);
    return (size_t)size;
}

/* Pushes the value at data + position; returns the position behind it. */
static size_t unpack_value(struct format *format, const char *data, size_t size, size_t position, int first)
{
    lua_State *L = format->L;
    const char *zero;

    need(L, format->padding <= size - position && format->size <= size - position - format->padding);
    position += format->padding;
    switch (format->option) {
    case 'x':
        break;
    case 'b':
    case 'B':
    case 'h':
    case 'H':
    case 'l':
    case 'L':
    case 'T':
    case 'i':
    case 'I':
        lua_pushnumber(L, integer_value(format, data + position));
        break;
    case 'f':
    case 'd':
        lua_pushnumber(L, float_value(format, data + position));
        break;
    case 'c':
        if (format->size == 0) {
            format->size = size_before(L, first);
            need(L, format->size <= size - position);
        }
        lua_pushlstring(L, data + position, format->size);
        break;
    case 's':
        zero = memchr(data + position, '\0', size - position);
        if (zero == NULL)
            luaL_error(L, "unfinished string in data");
        else
            format->size = (size_t)(zero - (data + position));
        lua_pushlstring(L, data + position, format->size);
        format->size++;
        break;
    default:
        refuse_option(format);
    }
    return position + format->size;
}

static int struct_unpack(lua_State *L)
{
    struct format format = format_begin(L, 1);
    size_t size, position;
    const char *data = luaL_checklstring(L, 2, &size);
    double start = lua_isnoneornil(L, 3) ? 1 : luaL_checknumber(L, 3);
    bool is_inside;
    int first;

    luaL_argcheck(L, !(start >= 0 && start < 1), 3, "offset must be 1 or greater");
    is_inside = start >= 1 && start - 1 <= (double)size;
    position = is_inside ? (size_t)start - 1 : 0;
    lua_settop(L, 3);
    first = lua_gettop(L) + 1;
    if (!is_inside && *format.at != '\0') {
        if ((*format.at | 32) == 'i') /* a wrong size is reported first */
            (void)next_option(&format, position);
        need(L, false);
    }
    while (next_option(&format, position)) {
        luaL_checkstack(L, 2, "too many results");
        position = unpack_value(&format, data, size, position, first);
    }
    lua_pushnumber(L, is_inside ? (double)position + 1 : start);
    return lua_gettop(L) - first + 1;
}

static bool is_letter_or_digit(char c)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9');
}

static int struct_size(lua_State *L)
{
    struct format format = format_begin(L, 1);
    size_t position = 0;

    while (next_option(&format, position)) {
        if (!is_letter_or_digit(format.option)) /* options without a value take no room */
            refuse_option(&format);
        luaL_argcheck(L, format.option != 's', 1, "option 's' has no fixed size");
        luaL_argcheck(L, format.option != 'c' || format.size != 0, 1, "option 'c0' has no fixed size");
        position += format.padding + format.size;
    }
    lua_pushnumber(L, (double)position);
    return 1;
}

void lua_struct_open(lua_State *L)
{
    static const luaL_Reg functions[] = {{"pack", struct_pack}, {"unpack", struct_unpack}, {"size", struct_size}};

    luaL_checkstack(L, 3, "no room for a library");
    lua_newtable(L);
    for (size_t i = 0; i < countof(functions); i++) {
        lua_pushcfunction(L, functions[i].func);
        lua_setfield(L, -2, functions[i].name);
    }
}
