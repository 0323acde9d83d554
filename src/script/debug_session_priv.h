/* Internals of debug_session.c and debug_commands.c. */
#pragma once

#include "net/resp.h"
#include "script/debug_session.h"

enum { DEBUG_BREAKPOINTS_MOST = 64, DEBUG_LINE_BYTES_USUAL = 256, DEBUG_LINE_BYTES_LEAST = 60 };

struct debug_session {
    struct script_host *host;
    struct request *request;
    struct {
        struct slice *items;
        int count, capacity;
    } lines;  /* of the script's text, which belongs to the request */
    int line; /* the line at which it stopped */
    int breakpoints[DEBUG_BREAKPOINTS_MOST];
    int breakpoint_count;
    bool in_child, steps, stops_next, aborted, gone;
    bool hinted;            /* the hint that long lines are cut was shown */
    size_t line_bytes_most; /* longest value or reply that is shown in full; 0: no limit */
    uint64_t resumed_ms;    /* when the script continued last */
    uint64_t heard_ms;      /* when the client sent a command last */
    struct buffer shown;    /* output not yet sent */
    uint32_t shown_count;
    struct buffer input;
    size_t input_used;
    struct resp_limits limits;
    struct resp_scratch scratch;
    struct resp_parser parser;
};

/* Adds one line of output; line breaks become blanks. */
void debug_show(struct debug_session *session, struct slice text);
void debug_showf(struct debug_session *session, const char *format, ...) PRINTF_LIKE(2, 3);
/* The same, cut to `maxlen` bytes. */
void debug_show_value(struct debug_session *session, struct slice text);
/* A line of the source with its number; nothing if there is no such line. */
void debug_show_line(struct debug_session *session, int line);

enum debug_next { DEBUG_ASK_AGAIN, DEBUG_GO_ON, DEBUG_ABORT };
/* Runs a command of the client. `frame` is where the script stopped. */
enum debug_next debug_command(struct debug_session *session, lua_State *L, lua_Debug *frame, const struct slice *words,
                              uint32_t count);
