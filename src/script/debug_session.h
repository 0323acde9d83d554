/* SCRIPT DEBUG: a client steps through its script, line by line, with redis-cli --ldb or anything that speaks like it.
 *
 *     SCRIPT DEBUG YES|SYNC, EVAL ... -> [stops, shows the line, reads commands, goes on]* -> <endsession>, the reply
 *
 * With YES the session lives in a forked child on the client's own socket: the server goes on meanwhile, and what the
 * script changes is gone with the child. With SYNC it runs in its worker, alone with the data: the others wait, which
 * is what the client asked for. Either way the connection is closed behind the reply.
 *
 * What is shown goes out as an array of statuses, a line each, whenever the session waits for a command. All of this is
 * the thread's that runs the script; it is inside of the connection's on_data and talks to the peer by itself
 * (net/talk.h). */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "script/lua_vm.h"

struct debug_session;
struct request;
struct script_host;

void debug_session_set(struct request *request); /* SCRIPT DEBUG */
bool debug_session_is_wanted(const struct request *request);

/* Begins the session of this script, in the child or in place; there is none yet. False: this process has nothing more
 * to do with the request: an error was replied, or the child has taken over. */
must_check bool debug_session_begin(struct script_host *host, struct request *request, struct slice source);
/* The script is over, its reply written. In the child it does not come back. */
void debug_session_end(struct script_host *host, struct request *request);

/* While a script runs: its commands, if each step is shown, and what it says itself. */
void debug_session_note_call(struct debug_session *session, const struct slice *words, uint32_t count);
void debug_session_note_refusal(struct debug_session *session, const char *error);
void debug_session_note_reply(struct debug_session *session, struct slice bytes); /* RESP */
void debug_session_say(struct debug_session *session, lua_State *L);              /* redis.debug: all arguments */
void debug_session_stop_next(struct debug_session *session);                      /* redis.breakpoint */

/* From the hook, at each line and now and then: stops if it is time to. May raise an error. */
void debug_session_hook(struct debug_session *session, lua_State *L, lua_Debug *frame);
