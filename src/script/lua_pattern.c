#include "script/lua_pattern.h"

#include "base/compiler.h"
#include "script/lua_bytes.h"
#include "script/lua_vm.h"

#include <ctype.h>
#include <lauxlib.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { CAPTURES_MOST = LUA_MAXCAPTURES, DEPTH_MOST = 200, CAPTURE_OPEN = -1, CAPTURE_POSITION = -2 };

struct capture {
    const char *start;
    ptrdiff_t size; /* or CAPTURE_OPEN, CAPTURE_POSITION */
};

/* One text and one pattern. */
struct matcher {
    lua_State *L;
    struct lua_vm *vm;
    const char *text, *text_end;
    const char *pattern, *pattern_end;
    int depth;
    int count; /* of captures */
    struct capture captures[CAPTURES_MOST];
};

static const char *match(struct matcher *matcher, const char *at, const char *pattern);

/* So much has been done; the script may be ended here. */
static void spend(struct matcher *matcher, size_t cost)
{
    lua_vm_look(matcher->L, matcher->vm, cost);
}

/* ------------------------------------------------------------------------------------------- single characters -- */

/* Behind the class of characters at `pattern`: "a", "%a", "[a-z]". */
static const char *class_end(struct matcher *matcher, const char *pattern)
{
    char first = *pattern++;

    if (first == '%') {
        if (pattern == matcher->pattern_end)
            luaL_error(matcher->L, "malformed pattern (ends with '%%')");
        return pattern + 1;
    }
    if (first != '[')
        return pattern;
    if (pattern < matcher->pattern_end && *pattern == '^')
        pattern++;
    do { /* a bracket that comes first stands for itself */
        if (pattern == matcher->pattern_end)
            luaL_error(matcher->L, "malformed pattern (missing ']')");
        if (*pattern++ == '%' && pattern < matcher->pattern_end)
            pattern++;
    } while (pattern == matcher->pattern_end || *pattern != ']');
    return pattern + 1;
}

static bool is_of_letter(unsigned char c, unsigned char letter)
{
    bool fits;

    switch (letter | 32) {
    case 'a':
        fits = isalpha(c) != 0;
        break;
    case 'c':
        fits = iscntrl(c) != 0;
        break;
    case 'd':
        fits = isdigit(c) != 0;
        break;
    case 'g':
        fits = isgraph(c) != 0;
        break;
    case 'l':
        fits = islower(c) != 0;
        break;
    case 'p':
        fits = ispunct(c) != 0;
        break;
    case 's':
        fits = isspace(c) != 0;
        break;
    case 'u':
        fits = isupper(c) != 0;
        break;
    case 'w':
        fits = isalnum(c) != 0;
        break;
    case 'x':
        fits = isxdigit(c) != 0;
        break;
    case 'z':
        fits = c == 0;
        break;
    default:
        return letter == c;
    }
    return isupper(letter) ? !fits : fits;
}

/* Of the set between `pattern`, its first bracket, and `last`, its last one. */
static bool is_of_set(unsigned char c, const char *pattern, const char *last)
{
    bool wanted = true;

    pattern++;
    if (*pattern == '^') {
        wanted = false;
        pattern++;
    }
    while (pattern < last) {
        if (*pattern == '%' && pattern + 1 < last) {
            if (is_of_letter(c, (unsigned char)pattern[1]))
                return wanted;
            pattern += 2;
        } else if (pattern + 2 < last && pattern[1] == '-') {
            if ((unsigned char)pattern[0] <= c && c <= (unsigned char)pattern[2])
                return wanted;
            pattern += 3;
        } else if ((unsigned char)*pattern++ == c) {
            return wanted;
        }
    }
    return !wanted;
}

/* Is there a character, and is it of the class that begins at `pattern` and ends before `end`? */
static bool fits_class(const struct matcher *matcher, const char *at, const char *pattern, const char *end)
{
    unsigned char c;

    if (at >= matcher->text_end)
        return false;
    c = (unsigned char)*at;
    switch (*pattern) {
    case '.':
        return true;
    case '%':
        return is_of_letter(c, (unsigned char)pattern[1]);
    case '[':
        return is_of_set(c, pattern, end - 1);
    default:
        return (unsigned char)*pattern == c;
    }
}

/* ------------------------------------------------------------------------------------------------- repetitions -- */

static const char *match_most(struct matcher *matcher, const char *at, const char *pattern, const char *end)
{
    ptrdiff_t count = 0;

    while (fits_class(matcher, at + count, pattern, end)) {
        count++;
        spend(matcher, 1);
    }
    for (; count >= 0; count--) {
        const char *found = match(matcher, at + count, end + 1);

        if (found != NULL)
            return found;
    }
    return NULL;
}

static const char *match_least(struct matcher *matcher, const char *at, const char *pattern, const char *end)
{
    for (;; at++) {
        const char *found = match(matcher, at, end + 1);

        if (found != NULL || !fits_class(matcher, at, pattern, end))
            return found;
    }
}

/* ---------------------------------------------------------------------------------------------------- captures -- */

static const char *begin_capture(struct matcher *matcher, const char *at, const char *pattern, ptrdiff_t what)
{
    const char *found;

    if (matcher->count == CAPTURES_MOST)
        luaL_error(matcher->L, "too many captures");
    matcher->captures[matcher->count++] = (struct capture){at, what};
    found = match(matcher, at, pattern);
    if (found == NULL)
        matcher->count--;
    return found;
}

static const char *end_capture(struct matcher *matcher, const char *at, const char *pattern)
{
    int index = matcher->count - 1;
    const char *found;

    while (index >= 0 && matcher->captures[index].size != CAPTURE_OPEN)
        index--;
    if (index < 0)
        luaL_error(matcher->L, "invalid pattern capture");
    matcher->captures[index].size = at - matcher->captures[index].start;
    found = match(matcher, at, pattern);
    if (found == NULL)
        matcher->captures[index].size = CAPTURE_OPEN;
    return found;
}

/* Matches the text of the capture with that number (a digit) again: returns the end, or NULL. */
static const char *match_again(struct matcher *matcher, const char *at, char digit)
{
    int index = digit - '1';
    ptrdiff_t size;

    if (index < 0 || index >= matcher->count || matcher->captures[index].size == CAPTURE_OPEN)
        luaL_error(matcher->L, "invalid capture index");
    size = matcher->captures[index].size;
    if (size == CAPTURE_POSITION) /* no text: nothing is that long */
        return NULL;
    spend(matcher, 1 + (size_t)size / 16);
    if (matcher->text_end - at < size || memcmp(matcher->captures[index].start, at, (size_t)size) != 0)
        return NULL;
    return at + size;
}

/* ------------------------------------------------------------------------------------------------------ matching -- */

/* %bxy, whose x is at `pattern`: behind the balanced text, or NULL. */
static const char *match_balance(struct matcher *matcher, const char *at, const char *pattern)
{
    size_t open = 1;

    if (matcher->pattern_end - pattern < 2)
        luaL_error(matcher->L, "unbalanced pattern");
    if (at == matcher->text_end || *at != pattern[0])
        return NULL;
    while (++at < matcher->text_end) {
        spend(matcher, 1);
        if (*at == pattern[1]) {
            if (--open == 0)
                return at + 1;
        } else if (*at == pattern[0]) {
            open++;
        }
    }
    return NULL;
}

/* %f[set], whose set is at `pattern`: does the set begin here? */
static bool is_frontier(const struct matcher *matcher, const char *at, const char *pattern, const char *end)
{
    unsigned char before = at == matcher->text ? 0 : (unsigned char)at[-1];
    unsigned char after = at == matcher->text_end ? 0 : (unsigned char)*at;

    return !is_of_set(before, pattern, end - 1) && is_of_set(after, pattern, end - 1);
}

/* %b, %f, %1: true; *at is behind it (NULL: it does not match), and *pattern. */
static bool match_special(struct matcher *matcher, const char **at, const char **pattern)
{
    char kind = matcher->pattern_end - *pattern >= 2 ? (*pattern)[1] : '\0';
    const char *set, *end;

    if (kind == 'b') {
        *at = match_balance(matcher, *at, *pattern + 2);
        *pattern += 4;
        return true;
    }
    if (kind == 'f') {
        set = *pattern + 2;
        if (set == matcher->pattern_end || *set != '[')
            luaL_error(matcher->L, "missing '[' after '%%f' in pattern");
        end = class_end(matcher, set);
        if (!is_frontier(matcher, *at, set, end))
            *at = NULL;
        *pattern = end;
        return true;
    }
    if (kind >= '0' && kind <= '9') {
        *at = match_again(matcher, *at, kind);
        *pattern += 2;
        return true;
    }
    return false;
}

/* Matches one class with its repetition. True: continue at *at (NULL: no match); false: *at is the end of the match. */
static bool match_class(struct matcher *matcher, const char **at, const char **pattern)
{
    const char *end = class_end(matcher, *pattern), *found;
    char repeats = end < matcher->pattern_end ? *end : '\0';
    bool fits;

    if (repeats == '*') {
        *at = match_most(matcher, *at, *pattern, end);
        return false;
    }
    if (repeats == '-') {
        *at = match_least(matcher, *at, *pattern, end);
        return false;
    }
    fits = fits_class(matcher, *at, *pattern, end);
    if (repeats == '+') {
        *at = fits ? match_most(matcher, *at + 1, *pattern, end) : NULL;
        return false;
    }
    if (repeats == '?') {
        found = fits ? match(matcher, *at + 1, end + 1) : NULL;
        if (found != NULL) {
            *at = found;
            return false;
        }
        *pattern = end + 1;
        return true;
    }
    *at = fits ? *at + 1 : NULL;
    *pattern = end;
    return true;
}

/* Behind what matches from `at` on; NULL: nothing does. */
static const char *match(struct matcher *matcher, const char *at, const char *pattern)
{
    if (++matcher->depth > DEPTH_MOST)
        luaL_error(matcher->L, "pattern too complex");
    while (at != NULL && pattern < matcher->pattern_end) {
        spend(matcher, 1);
        if (*pattern == '(') {
            bool position = pattern + 1 < matcher->pattern_end && pattern[1] == ')';

            at = position ? begin_capture(matcher, at, pattern + 2, CAPTURE_POSITION)
                          : begin_capture(matcher, at, pattern + 1, CAPTURE_OPEN);
            break;
        }
        if (*pattern == ')') {
            at = end_capture(matcher, at, pattern + 1);
            break;
        }
        if (*pattern == '$' && pattern + 1 == matcher->pattern_end) {
            at = at == matcher->text_end ? at : NULL;
            break;
        }
        if (*pattern == '%' && match_special(matcher, &at, &pattern))
            continue;
        if (!match_class(matcher, &at, &pattern))
            break;
    }
    matcher->depth--;
    return at;
}

/* The whole pattern, from `at` on. */
static const char *match_at(struct matcher *matcher, const char *at)
{
    matcher->depth = 0;
    matcher->count = 0;
    return match(matcher, at, matcher->pattern);
}

static struct matcher begin(lua_State *L, int text_index, int pattern_index)
{
    struct matcher matcher;
    size_t text_size, pattern_size;

    matcher.L = L;
    matcher.vm = lua_vm_of(L);
    matcher.text = luaL_checklstring(L, text_index, &text_size);
    matcher.text_end = matcher.text + text_size;
    matcher.pattern = luaL_checklstring(L, pattern_index, &pattern_size);
    matcher.pattern_end = matcher.pattern + pattern_size;
    matcher.depth = matcher.count = 0;
    return matcher;
}

static bool take_anchor(struct matcher *matcher)
{
    if (matcher->pattern == matcher->pattern_end || *matcher->pattern != '^')
        return false;
    matcher->pattern++;
    return true;
}

/* ------------------------------------------------------------------------------------------------------- results -- */

/* The capture of that index; the first one of none is the whole match. */
static void push_capture(struct matcher *matcher, int index, const char *start, const char *end)
{
    const struct capture *capture = &matcher->captures[index];

    if (index >= matcher->count && index != 0)
        luaL_error(matcher->L, "invalid capture index");
    if (index >= matcher->count)
        lua_pushlstring(matcher->L, start, (size_t)(end - start));
    else if (capture->size == CAPTURE_POSITION)
        lua_pushinteger(matcher->L, capture->start - matcher->text + 1);
    else if (capture->size == CAPTURE_OPEN)
        luaL_error(matcher->L, "unfinished capture");
    else
        lua_pushlstring(matcher->L, capture->start, (size_t)capture->size);
}

static int push_captures(struct matcher *matcher, const char *start, const char *end, bool whole_if_none)
{
    int count = matcher->count == 0 && whole_if_none ? 1 : matcher->count;

    luaL_checkstack(matcher->L, count, "too many captures");
    for (int i = 0; i < count; i++)
        push_capture(matcher, i, start, end);
    return count;
}

/* Where the search is to begin, as an offset. */
static size_t first_offset(const struct matcher *matcher, lua_State *L)
{
    ptrdiff_t size = matcher->text_end - matcher->text, first = luaL_optinteger(L, 3, 1);

    if (first < 0)
        first += size + 1;
    return (size_t)MIN(MAX(first - 1, 0), size);
}

static int find_plain(lua_State *L, const struct matcher *matcher, size_t offset)
{
    const char *start = matcher->text + offset;
    size_t size = (size_t)(matcher->pattern_end - matcher->pattern);
    const char *found = size == 0 ? start : memmem(start, (size_t)(matcher->text_end - start), matcher->pattern, size);

    if (found == NULL) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, found - matcher->text + 1);
    lua_pushinteger(L, found - matcher->text + (ptrdiff_t)size);
    return 2;
}

static bool has_specials(const struct matcher *matcher)
{
    for (const char *at = matcher->pattern; at < matcher->pattern_end; at++) {
        if (*at != '\0' && strchr("^$*+?.([%-", *at) != NULL)
            return true;
    }
    return false;
}

static int find(lua_State *L, bool positions)
{
    struct matcher matcher = begin(L, 1, 2);
    size_t offset = first_offset(&matcher, L);
    bool anchored;

    if (positions && (lua_toboolean(L, 4) || !has_specials(&matcher)))
        return find_plain(L, &matcher, offset);
    anchored = take_anchor(&matcher);
    for (const char *at = matcher.text + offset; at <= matcher.text_end; at++) {
        const char *end = match_at(&matcher, at);

        if (end != NULL && !positions)
            return push_captures(&matcher, at, end, true);
        if (end != NULL) {
            lua_pushinteger(L, at - matcher.text + 1);
            lua_pushinteger(L, end - matcher.text);
            return push_captures(&matcher, NULL, NULL, false) + 2;
        }
        if (anchored)
            break;
        spend(&matcher, 1);
    }
    lua_pushnil(L);
    return 1;
}

static int string_find(lua_State *L)
{
    return find(L, true);
}

static int string_match(lua_State *L)
{
    return find(L, false);
}

/* Upvalues: the text, the pattern, the offset to go on at. */
static int next_match(lua_State *L)
{
    struct matcher matcher = begin(L, lua_upvalueindex(1), lua_upvalueindex(2));
    const char *start = matcher.text + (size_t)lua_tonumber(L, lua_upvalueindex(3));

    for (const char *at = start; at <= matcher.text_end; at++) {
        const char *end = match_at(&matcher, at);

        if (end != NULL) {
            lua_pushnumber(L, (double)(end - matcher.text + (end == at)));
            lua_replace(L, lua_upvalueindex(3));
            return push_captures(&matcher, at, end, true);
        }
        spend(&matcher, 1);
    }
    return 0;
}

static int string_gmatch(lua_State *L)
{
    luaL_checkstring(L, 1);
    luaL_checkstring(L, 2);
    lua_settop(L, 2);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, next_match, 3);
    return 1;
}

/* ----------------------------------------------------------------------------------------------------- replacing -- */

/* The replacement is a text at 3, in which % and a digit refer to captures. */
static void append_template(struct matcher *matcher, struct lua_bytes *out, const char *start, const char *end)
{
    size_t size;
    const char *text = lua_tolstring(matcher->L, 3, &size);

    spend(matcher, 1 + size / 16);
    for (size_t i = 0; i < size; i++) {
        if (text[i] != '%') {
            lua_bytes_append_char(out, text[i]);
        } else if (++i == size || text[i] < '0' || text[i] > '9') {
            lua_bytes_append_char(out, i < size ? text[i] : '\0');
        } else if (text[i] == '0') {
            lua_bytes_append(out, start, (size_t)(end - start));
        } else {
            size_t capture_size;
            const char *capture;

            push_capture(matcher, text[i] - '1', start, end);
            capture = lua_tolstring(matcher->L, -1, &capture_size);
            lua_bytes_append(out, capture, capture_size);
            lua_pop(matcher->L, 1);
        }
    }
}

/* Appends the replacement of a match: the result of the table or function at 3, or the match itself. */
static void append_replacement(struct matcher *matcher, struct lua_bytes *out, const char *start, const char *end)
{
    lua_State *L = matcher->L;
    size_t size;
    const char *text;

    if (lua_isstring(L, 3)) {
        append_template(matcher, out, start, end);
        return;
    }
    if (lua_isfunction(L, 3)) {
        lua_pushvalue(L, 3);
        lua_call(L, push_captures(matcher, start, end, true), 1);
    } else {
        push_capture(matcher, 0, start, end);
        lua_gettable(L, 3);
    }
    if (!lua_toboolean(L, -1)) {
        lua_bytes_append(out, start, (size_t)(end - start));
    } else if (lua_isstring(L, -1)) {
        text = lua_tolstring(L, -1, &size);
        lua_bytes_append(out, text, size);
    } else {
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    }
    lua_pop(L, 1);
}

static int string_gsub(lua_State *L)
{
    struct matcher matcher = begin(L, 1, 2);
    struct lua_vm *vm = matcher.vm;
    const char *at = matcher.text;
    struct lua_bytes out;
    ptrdiff_t most, count = 0;
    bool anchored = take_anchor(&matcher);
    int type = lua_type(L, 3);

    luaL_argcheck(L, type == LUA_TSTRING || type == LUA_TNUMBER || type == LUA_TFUNCTION || type == LUA_TTABLE, 3,
                  "string/function/table expected");
    most = lua_isnoneornil(L, 4) ? PTRDIFF_MAX : (ptrdiff_t)luaL_checkinteger(L, 4);
    lua_settop(L, 4);
    (void)lua_vm_enter(L);
    lua_bytes_init(&out, L);
    while (count < most) {
        const char *end = match_at(&matcher, at);

        spend(&matcher, 1);
        if (end != NULL) {
            count++;
            append_replacement(&matcher, &out, at, end);
        }
        if (end != NULL && end > at)
            at = end;
        else if (at < matcher.text_end)
            lua_bytes_append_char(&out, *at++);
        else
            break;
        if (anchored)
            break;
    }
    lua_bytes_append(&out, at, (size_t)(matcher.text_end - at));
    vm->depth--;
    lua_bytes_push(&out);
    lua_pushinteger(L, count);
    return 2;
}

void lua_pattern_add(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"find", string_find},    {"match", string_match}, {"gmatch", string_gmatch},
        {"gfind", string_gmatch}, {"gsub", string_gsub},
    };

    for (size_t i = 0; i < countof(functions); i++) {
        lua_pushcfunction(L, functions[i].func);
        lua_setfield(L, -2, functions[i].name);
    }
}
