/* The commands of the debugger while a script is stopped. */
#include "base/number.h"
#include "script/debug_session_priv.h"
#include "script/debug_values.h"
#include "script/script_api.h"
#include "script/script_host_priv.h"

#include <limits.h>
#include <stdio.h>

enum { CONTEXT_LINES = 5 };

/* Text that is not a number counts as 0. */
static int number_of(struct slice word)
{
    int64_t number;

    return number_parse_i64(word, &number) && number >= INT_MIN && number <= INT_MAX ? (int)number : 0;
}

/* ------------------------------------------------------------------------------------------------------- source -- */

static void list(struct debug_session *session, int around, int context)
{
    if (around <= 0)
        around = session->line;
    context = MAX(context, 0);
    for (int line = 1; line <= session->lines.count; line++) {
        if (line >= around - context && line <= around + (int64_t)context)
            debug_show_line(session, line);
    }
}

static bool remove_breakpoint(struct debug_session *session, int line)
{
    for (int i = 0; i < session->breakpoint_count; i++) {
        if (session->breakpoints[i] == line) {
            session->breakpoints[i] = session->breakpoints[--session->breakpoint_count];
            return true;
        }
    }
    return false;
}

static bool add_breakpoint(struct debug_session *session, int line)
{
    for (int i = 0; i < session->breakpoint_count; i++) {
        if (session->breakpoints[i] == line)
            return false;
    }
    if (line > session->lines.count)
        return false;
    session->breakpoints[session->breakpoint_count++] = line;
    return true;
}

static void change_breakpoint(struct debug_session *session, struct slice word)
{
    int64_t number;

    if (!number_parse_i64(word, &number) || number < -INT_MAX || number > INT_MAX) {
        debug_showf(session, "Invalid argument:'%.*s'", (int)MIN(word.size, (size_t)128), word.data);
    } else if (number == 0) {
        session->breakpoint_count = 0;
        debug_show(session, SLICE("All breakpoints removed."));
    } else if (number < 0) {
        debug_showf(session, "%s",
                    remove_breakpoint(session, (int)-number) ? "Breakpoint removed."
                                                             : "No breakpoint in the specified line.");
    } else if (session->breakpoint_count == DEBUG_BREAKPOINTS_MOST) {
        debug_show(session, SLICE("Too many breakpoints set."));
    } else if (add_breakpoint(session, (int)number)) {
        list(session, (int)number, 1);
    } else {
        debug_show(session, SLICE("Wrong line number."));
    }
}

static void breakpoints(struct debug_session *session, const struct slice *words, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        change_breakpoint(session, words[i]);
    if (count > 1)
        return;
    if (session->breakpoint_count == 0) {
        debug_show(session, SLICE("No breakpoints set. Use 'b <line>' to add one."));
        return;
    }
    debug_showf(session, "%d breakpoints set:", session->breakpoint_count);
    for (int i = 0; i < session->breakpoint_count; i++)
        debug_show_line(session, session->breakpoints[i]);
}

/* ------------------------------------------------------------------------------------------------------- values -- */

/* The value at the top, popped. */
static void show_value(struct debug_session *session, lua_State *L, const char *what, const char *name)
{
    struct buffer text = {0};

    buffer_printf(&text, "<%s> ", what);
    if (name != NULL)
        buffer_printf(&text, "%s = ", name);
    debug_append_value(&text, L, -1);
    lua_pop(L, 1);
    debug_show_value(session, buffer_slice(&text));
    buffer_fini(&text);
}

static void print_locals(struct debug_session *session, lua_State *L, lua_Debug *frame)
{
    const char *name;
    int shown = 0;

    for (int i = 1; (name = lua_getlocal(L, frame, i)) != NULL; i++) {
        if (*name == '(') { /* the compiler's own */
            lua_pop(L, 1);
            continue;
        }
        show_value(session, L, "value", name);
        shown++;
    }
    if (shown == 0)
        debug_show(session, SLICE("No local variables in the current context."));
}

/* The innermost one of that name, pushed. The last one in a frame counts: it hides the others. */
static bool find_local(lua_State *L, struct slice name)
{
    lua_Debug frame;

    for (int level = 0; lua_getstack(L, level, &frame) != 0; level++) {
        const char *found;
        int last = 0;

        for (int i = 1; (found = lua_getlocal(L, &frame, i)) != NULL; i++) {
            lua_pop(L, 1);
            if (slice_equal(slice_from_text(found), name))
                last = i;
        }
        if (last != 0) {
            (void)lua_getlocal(L, &frame, last);
            return true;
        }
    }
    return false;
}

static void print_variable(struct debug_session *session, lua_State *L, struct slice name)
{
    if (find_local(L, name)) {
        show_value(session, L, "value", NULL);
    } else if (slice_equal(name, SLICE("KEYS")) || slice_equal(name, SLICE("ARGV"))) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, session->host->vm->globals);
        lua_pushlstring(L, name.data, name.size);
        lua_rawget(L, -2);
        lua_remove(L, -2);
        show_value(session, L, "value", NULL);
    } else {
        debug_show(session, SLICE("No such variable."));
    }
}

static void trace(struct debug_session *session, lua_State *L)
{
    lua_Debug frame;

    for (int level = 0; lua_getstack(L, level, &frame) != 0; level++) {
        if (lua_getinfo(L, "Snl", &frame) == 0 || strcmp(frame.source, "@user_script") != 0)
            continue;
        debug_showf(session, "%s %s:", level == 0 ? "In" : "From", frame.name != NULL ? frame.name : "top level");
        debug_show_line(session, frame.currentline);
    }
}

static void evaluate(struct debug_session *session, lua_State *L, const struct slice *words, uint32_t count)
{
    struct buffer code = {0};

    buffer_append_text(&code, "return");
    for (uint32_t i = 1; i < count; i++) {
        buffer_append_text(&code, " ");
        buffer_append(&code, words[i].data, words[i].size);
    }
    if (!lua_vm_compile(L, buffer_slice(&code), "@ldb_eval", true)) {
        lua_pop(L, 1); /* no expression */
        if (!lua_vm_compile(L, slice_skip(buffer_slice(&code), sizeof("return") - 1), "@ldb_eval", false)) {
            debug_showf(session, "<error> %s", lua_tostring(L, -1));
            lua_pop(L, 1);
            buffer_fini(&code);
            return;
        }
    }
    buffer_fini(&code);
    if (lua_pcall(L, 0, 1, 0) == 0) {
        show_value(session, L, "retval", NULL);
        return;
    }
    if (lua_istable(L, -1)) { /* a command's */
        lua_pushliteral(L, "err");
        lua_rawget(L, -2);
        lua_replace(L, -2);
    }
    debug_showf(session, "<error> %s", lua_isstring(L, -1) ? lua_tostring(L, -1) : "unknown error");
    lua_pop(L, 1);
}

/* As the script would call it; the steps of it are shown. */
static void run_command(struct debug_session *session, lua_State *L, const struct slice *words, uint32_t count)
{
    const bool steps = session->steps;

    if (lua_checkstack(L, (int)MIN(count, 10000U) + 1) == 0)
        return;
    session->steps = true;
    lua_pushcfunction(L, script_api_pcall);
    for (uint32_t i = 1; i < count; i++)
        lua_pushlstring(L, words[i].data, words[i].size);
    if (lua_pcall(L, (int)count - 1, 0, 0) != 0)
        lua_pop(L, 1);
    session->steps = steps;
}

static void set_length(struct debug_session *session, const struct slice *words, uint32_t count)
{
    if (count == 2) {
        int most = number_of(words[1]);

        session->line_bytes_most = most == 0 ? 0 : (size_t)MAX(most, (int)DEBUG_LINE_BYTES_LEAST);
        session->hinted = true; /* a client that sets it knows it */
    }
    if (session->line_bytes_most != 0)
        debug_showf(session, "<value> replies are truncated at %zu bytes.", session->line_bytes_most);
    else
        debug_show(session, SLICE("<value> replies are unlimited."));
}

static void help(struct debug_session *session)
{
    static const char *const lines[] = {
        "Script debugger help:",
        "[h]elp               These lines.",
        "[s]tep, [n]ext       Go on to the next line.",
        "[c]ontinue           Go on to the next breakpoint.",
        "[l]ist [line [ctx]]  The source around a line (0: this one), as many lines to both sides.",
        "[w]hole              All of the source.",
        "[p]rint              The local variables.",
        "[p]rint <var>        One variable of this function or those around it, or KEYS, or ARGV.",
        "[b]reak              The breakpoints.",
        "[b]reak <line> ...   Stop in these lines from now on; -<line>: no more; 0: nowhere.",
        "[t]race              Which functions are running.",
        "[e]val <code>        Run some Lua; local variables are not seen.",
        "[r]edis <cmd>        Run a command.",
        "[m]axlen [len]       Cut values and replies after so many bytes; 0: never.",
        "[a]bort              End the script. In SYNC mode its changes stay.",
        "",
        "In scripts: redis.debug(...) shows values, redis.breakpoint() stops at the next line.",
    };

    for (size_t i = 0; i < countof(lines); i++)
        debug_show(session, slice_from_text(lines[i]));
}

/* ----------------------------------------------------------------------------------------------------- choosing -- */

static bool is(struct slice word, const char *name)
{
    return slice_equal_text_nocase(word, name) || (word.size == 1 && (word.data[0] | 32) == name[0]);
}

/* Commands with arguments; false: it is not one of them. */
static bool run_with_words(struct debug_session *session, lua_State *L, lua_Debug *frame, const struct slice *words,
                           uint32_t count)
{
    if (is(words[0], "list"))
        list(session, count > 1 ? number_of(words[1]) : 0, count > 2 ? number_of(words[2]) : CONTEXT_LINES);
    else if (is(words[0], "break"))
        breakpoints(session, words, count);
    else if (is(words[0], "print") && count == 2)
        print_variable(session, L, words[1]);
    else if (is(words[0], "print") && count == 1)
        print_locals(session, L, frame);
    else if (is(words[0], "eval"))
        evaluate(session, L, words, count);
    else if (is(words[0], "redis") && count > 1)
        run_command(session, L, words, count);
    else if (is(words[0], "maxlen") && count <= 2)
        set_length(session, words, count);
    else
        return false;
    return true;
}

enum debug_next debug_command(struct debug_session *session, lua_State *L, lua_Debug *frame, const struct slice *words,
                              uint32_t count)
{
    if (run_with_words(session, L, frame, words, count))
        return DEBUG_ASK_AGAIN;
    if (is(words[0], "step") || is(words[0], "next")) {
        session->steps = true;
        return DEBUG_GO_ON;
    }
    if (is(words[0], "continue")) {
        session->steps = false;
        return DEBUG_GO_ON;
    }
    if (is(words[0], "abort"))
        return DEBUG_ABORT;
    if (is(words[0], "trace"))
        trace(session, L);
    else if (is(words[0], "whole"))
        list(session, 1, session->lines.count);
    else if (is(words[0], "help"))
        help(session);
    else
        debug_show(session, SLICE("<error> Unknown Redis Lua debugger command or wrong number of arguments."));
    return DEBUG_ASK_AGAIN;
}
