#include "script/debug_session.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/talk.h"
#include "script/debug_session_priv.h"
#include "script/debug_values.h"
#include "script/lua_values.h"
#include "script/script_api.h"
#include "script/script_busy.h"
#include "script/script_host_priv.h"
#include "server/core/client.h"
#include "server/core/server.h"
#include "server/durable/child.h"
#include "server/process/reaper.h"
#include "server/run/dispatch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SILENCE_MOST_MS = 30 * 60 * 1000, SHOWN_BYTES_MOST = 16 << 20, INPUT_BYTES_MOST = 1 << 20 };

/* ------------------------------------------------------------------------------------------------------ showing -- */

static void show(struct debug_session *session, struct slice text)
{
    char *at;

    if (session->gone || session->shown.size > SHOWN_BYTES_MOST)
        return;
    at = buffer_reserve(&session->shown, text.size + 3);
    *at++ = '+';
    for (size_t i = 0; i < text.size; i++)
        *at++ = text.data[i] == '\r' || text.data[i] == '\n' ? ' ' : text.data[i];
    *at++ = '\r';
    *at++ = '\n';
    session->shown.size += text.size + 3;
    session->shown_count++;
}

void debug_show(struct debug_session *session, struct slice text)
{
    show(session, text);
}

void debug_showf(struct debug_session *session, const char *format, ...)
{
    struct buffer text = {0};
    va_list arguments;

    va_start(arguments, format);
    buffer_vprintf(&text, format, arguments);
    va_end(arguments);
    show(session, buffer_slice(&text));
    buffer_fini(&text);
}

void debug_show_value(struct debug_session *session, struct slice text)
{
    struct buffer cut = {0};

    if (session->line_bytes_most == 0 || text.size <= session->line_bytes_most) {
        show(session, text);
        return;
    }
    buffer_append(&cut, text.data, session->line_bytes_most);
    buffer_append_text(&cut, " ...");
    show(session, buffer_slice(&cut));
    buffer_fini(&cut);
    if (!session->hinted)
        show(session, SLICE("<hint> The above reply was trimmed. Use 'maxlen 0' to disable trimming."));
    session->hinted = true;
}

static bool has_breakpoint(const struct debug_session *session, int line)
{
    for (int i = 0; i < session->breakpoint_count; i++) {
        if (session->breakpoints[i] == line)
            return true;
    }
    return false;
}

void debug_show_line(struct debug_session *session, int line)
{
    if (line >= 1 && line <= session->lines.count)
        debug_showf(session, "%s%c%-3d %.*s", line == session->line ? "->" : "  ",
                    has_breakpoint(session, line) ? '#' : ' ', line, (int)session->lines.items[line - 1].size,
                    session->lines.items[line - 1].data);
}

/* Alone with the data, in the worker itself: SCRIPT KILL and the server's end are heard while the client thinks. */
static bool goes_on(void *context)
{
    const struct debug_session *session = context;

    if (clock_monotonic_ms() - session->heard_ms > SILENCE_MOST_MS)
        return false;
    return session->in_child || !script_busy_is_to_end(session->request->worker);
}

/* Sends the lines to show, before the connection's own output. */
static void flush(struct debug_session *session)
{
    struct conn *conn = &session->request->client->conn;

    client_assert_owned(session->request->client);
    assert((session->shown_count == 0) == (session->shown.size == 0));
    if (session->shown_count != 0 && !session->gone) {
        resp_write_array(&conn->output, 2, session->shown_count);
        output_append(&conn->output, session->shown.data, session->shown.size);
    }
    buffer_fini(&session->shown);
    session->shown_count = 0;
    session->gone = session->gone || !conn_talk_flush(conn, goes_on, session);
}

/* ------------------------------------------------------------------------------------------------------- asking -- */

static bool receive(struct debug_session *session)
{
    struct conn *conn = &session->request->client->conn;
    size_t size;

    if (session->input.size > INPUT_BYTES_MOST)
        return false;
    size = conn_talk_receive(conn, buffer_reserve(&session->input, CONN_TALK_ROOM), CONN_TALK_ROOM, goes_on, session);
    session->input.size += size;
    session->heard_ms = clock_monotonic_ms();
    return size != 0;
}

/* The client's next words; false: it has gone. They last until the next call. */
static bool ask(struct debug_session *session, struct resp_command *command)
{
    for (;;) {
        enum resp_result result = RESP_MORE;

        resp_scratch_reset(&session->scratch);
        if (session->input.size > session->input_used)
            result = resp_parse(&session->parser, session->input.data + session->input_used,
                                session->input.size - session->input_used, command);
        if (result == RESP_ERROR || result == RESP_LARGE)
            return false;
        if (result == RESP_MORE) {
            if (!receive(session))
                return false;
            continue;
        }
        session->input_used += command->consumed;
        if (result == RESP_COMMAND && command->arg_count != 0)
            return true;
    }
}

static void forget_input(struct debug_session *session)
{
    assert(session->input_used <= session->input.size);
    if (session->input_used != session->input.size)
        return;
    session->input.size = 0;
    session->input_used = 0;
}

/* The client of a child has gone: so has the reason for it. In place the script runs to its end, unwatched. */
static void lose_client(struct debug_session *session)
{
    if (session->in_child)
        _exit(0);
    session->gone = true;
    session->steps = session->stops_next = false;
    session->breakpoint_count = 0;
}

static int abort_script(lua_State *L)
{
    lua_values_push_error(L, SLICE("ERR script aborted for user request"));
    return lua_error(L);
}

static void stand(struct debug_session *session, lua_State *L, lua_Debug *frame)
{
    enum debug_next next = DEBUG_ASK_AGAIN;
    struct resp_command command;

    while (next == DEBUG_ASK_AGAIN) {
        flush(session);
        forget_input(session);
        if (session->gone || !ask(session, &command)) {
            lose_client(session);
            break;
        }
        next = debug_command(session, L, frame, command.args, command.arg_count);
        if (next == DEBUG_ASK_AGAIN && session->shown_count == 0)
            resp_write_array(&session->request->client->conn.output, 2, 0); /* each command is answered */
        resp_command_fini(&command);
    }
    session->resumed_ms = clock_monotonic_ms();
    session->aborted = next == DEBUG_ABORT;
}

void debug_session_hook(struct debug_session *session, lua_State *L, lua_Debug *frame)
{
    const char *reason = "step over";
    bool late = clock_monotonic_ms() - session->resumed_ms > script_busy_threshold_ms();

    if (session->aborted)
        abort_script(L); /* no pcall of the script's gets past that */
    if (session->gone || lua_getinfo(L, "Sl", frame) == 0 || strcmp(frame->source, "@user_script") != 0)
        return;
    if (frame->event != LUA_HOOKLINE && !late)
        return;
    if (has_breakpoint(session, frame->currentline))
        reason = "break point";
    else if (session->stops_next)
        reason = "redis.breakpoint() called";
    else if (!session->steps && late)
        reason = "timeout reached, infinite loop?";
    else if (!session->steps)
        return;
    session->stops_next = false;
    session->line = frame->currentline;
    debug_showf(session, "* Stopped at %d, stop reason = %s", session->line, reason);
    debug_show_line(session, session->line);
    stand(session, L, frame);
    if (session->aborted)
        abort_script(L);
}

/* ------------------------------------------------------------------------------------------------- showing lines -- */

void debug_session_note_call(struct debug_session *session, const struct slice *words, uint32_t count)
{
    struct buffer text = {0};

    if (!session->steps)
        return;
    buffer_append_text(&text, "<redis>");
    for (uint32_t i = 0; i < count; i++) {
        buffer_append_text(&text, " ");
        buffer_append(&text, words[i].data, words[i].size);
    }
    show(session, buffer_slice(&text));
    buffer_fini(&text);
}

void debug_session_note_refusal(struct debug_session *session, const char *error)
{
    if (session->steps)
        debug_showf(session, "<error> %s", strncmp(error, "ERR ", 4) == 0 ? error + 4 : error);
}

void debug_session_note_reply(struct debug_session *session, struct slice bytes)
{
    struct buffer text = {0};

    if (!session->steps)
        return;
    if (bytes.data[0] == RESP_TYPE_ERROR)
        debug_showf(session, "<error> %.*s", (int)MIN(bytes.size - 2, (size_t)INT32_MAX), bytes.data);
    buffer_append_text(&text, "<reply> ");
    debug_append_reply(&text, bytes);
    debug_show_value(session, buffer_slice(&text));
    buffer_fini(&text);
}

void debug_session_say(struct debug_session *session, lua_State *L)
{
    struct buffer text = {0};
    lua_Debug frame;
    int line = 0;

    if (lua_getstack(L, 1, &frame) != 0 && lua_getinfo(L, "l", &frame) != 0)
        line = frame.currentline;
    buffer_printf(&text, "<debug> line %d:", line);
    for (int i = 1, count = lua_gettop(L); i <= count; i++) {
        buffer_append_text(&text, i == 1 ? " " : ", ");
        debug_append_value(&text, L, i);
    }
    show(session, buffer_slice(&text));
    buffer_fini(&text);
}

void debug_session_stop_next(struct debug_session *session)
{
    session->stops_next = true;
}

/* ------------------------------------------------------------------------------------------------ begin and end -- */

void debug_session_set(struct request *request)
{
    const uint32_t both = CLIENT_SCRIPT_DEBUG | CLIENT_SCRIPT_DEBUG_SYNC;
    struct client *client = request->client;

    if (request->in_exec || !output_is_empty(&client->conn.output)) {
        reply_error(request, "ERR SCRIPT DEBUG must be called outside a pipeline");
        return;
    }
    if (request_arg_is(request, 2, "no"))
        client->flags &= ~both;
    else if (request_arg_is(request, 2, "yes"))
        client->flags = (client->flags & ~both) | CLIENT_SCRIPT_DEBUG;
    else if (request_arg_is(request, 2, "sync"))
        client->flags |= both;
    else
        reply_error(request, "ERR Use SCRIPT DEBUG YES/SYNC/NO");
    if (!request->failed)
        reply_ok(request);
}

bool debug_session_is_wanted(const struct request *request)
{
    return UNLIKELY((request->client->flags & CLIENT_SCRIPT_DEBUG) != 0) && !request->in_exec;
}

static void split_lines(struct debug_session *session, struct slice source)
{
    while (source.size != 0) {
        const char *end = memchr(source.data, '\n', source.size);
        size_t size = end != NULL ? (size_t)(end - source.data) : source.size;

        *ARRAY_PUSH(&session->lines) = slice_make(source.data, size);
        source = slice_skip(source, MIN(size + 1, source.size));
    }
}

/* In the child: nothing but the client is left to it. */
static void become_child(const struct request *request)
{
    child_become(request->client->conn.fd, 0);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGINT, SIG_DFL);
    request->access->effects = NULL; /* nobody in here reads a journal */
}

/* True in the child. */
static bool fork_session(struct request *request)
{
    pid_t pid;

    if (!reaper_has_room()) {
        reply_error(request, "ERR Too many debugging sessions");
        return false;
    }
    pid = fork();
    if (pid == 0) {
        become_child(request);
        return true;
    }
    if (pid < 0) {
        log_warning("Can't fork the debugging session: %s", strerror(errno));
        reply_error(request, "ERR Can't fork the debugging session. Please check the server's log.");
        return false;
    }
    reaper_add(pid);
    conn_leave(&request->client->conn);
    return false;
}

bool debug_session_begin(struct script_host *host, struct request *request, struct slice source)
{
    bool forks = (request->client->flags & CLIENT_SCRIPT_DEBUG_SYNC) == 0;
    struct debug_session *session;

    script_host_assert_here(host);
    worker_assert_inside(request->worker);
    assert(host->debug == NULL && host->run == NULL);
    request->client->flags &= ~(uint32_t)(CLIENT_SCRIPT_DEBUG | CLIENT_SCRIPT_DEBUG_SYNC);
    request->effect = EFFECT_NONE;
    if (!conn_may_talk(&request->client->conn)) {
        reply_error(request, "ERR Script debugging needs the event loop epoll: see the directive event-loop");
        return false;
    }
    dispatch_escalate(request->worker); /* nobody is in the middle of anything */
    if (forks && !fork_session(request))
        return false;
    session = mem_alloc_zero(sizeof(*session));
    *session = (struct debug_session){.host = host,
                                      .request = request,
                                      .in_child = forks,
                                      .steps = true,
                                      .line_bytes_most = DEBUG_LINE_BYTES_USUAL,
                                      .resumed_ms = clock_monotonic_ms(),
                                      .heard_ms = clock_monotonic_ms(),
                                      .limits = {.bulk_max_bytes = INPUT_BYTES_MOST, .authenticated = true}};
    split_lines(session, source);
    resp_parser_init(&session->parser, &session->limits, &session->scratch);
    host->debug = session;
    lua_sethook(host->vm->L, script_api_hook, LUA_MASKLINE | LUA_MASKCOUNT, 1000);
    return true;
}

void debug_session_end(struct script_host *host, struct request *request)
{
    struct debug_session *session = host->debug;
    struct conn *conn = &request->client->conn;
    struct output reply;

    assert(session != NULL && session->request == request && host->run == NULL);
    host->debug = NULL;
    script_api_watch(host->vm->L);
    output_init(&reply, NULL);
    output_splice(&reply, &conn->output);
    show(session, SLICE("<endsession>"));
    flush(session);
    output_splice(&conn->output, &reply);
    flush(session);
    if (session->in_child)
        _exit(0);
    conn_close_after_flush(conn); /* tells the client that the session is over */
    resp_parser_fini(&session->parser);
    resp_scratch_fini(&session->scratch);
    buffer_fini(&session->shown);
    buffer_fini(&session->input);
    ARRAY_FINI(&session->lines);
    mem_free(session);
}
