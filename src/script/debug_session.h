/* SCRIPT DEBUG: a client steps through its script line by line, with redis-cli --ldb or another client that supports
 * it.
 *
 *     SCRIPT DEBUG YES|SYNC, EVAL ... -> [stops, shows the line, reads commands, continues]* -> <endsession>, the reply
 *
 * With YES the session runs in a forked child on the client's own socket: the server continues meanwhile, and the
 * script's changes are lost with the child. With SYNC it runs in its worker, alone with the data: all other clients
 * wait. In both cases the connection is closed after the reply.
 *
 * Output is an array of statuses, one for each line; it is sent whenever the session waits for a command. The thread
 * that runs the script does all of this, inside of the connection's on_data, and talks to the peer itself
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

/* Begins a session for this script, in a child or in place; there is none yet. False: this process is done with the
 * request: an error was replied, or the child has taken over. */
must_check bool debug_session_begin(struct script_host *host, struct request *request, struct slice source);
/* Call it when the script has ended and its reply is written. In the child it does not return. */
void debug_session_end(struct script_host *host, struct request *request);

/* While a script runs: the commands it calls, if each step is shown, and its own messages. */
void debug_session_note_call(struct debug_session *session, const struct slice *words, uint32_t count);
void debug_session_note_refusal(struct debug_session *session, const char *error);
void debug_session_note_reply(struct debug_session *session, struct slice bytes); /* the reply in RESP */
void debug_session_say(struct debug_session *session, lua_State *L);              /* redis.debug: all arguments */
void debug_session_stop_next(struct debug_session *session);                      /* redis.breakpoint */

/* Called by the hook, at each line and now and then: stops if necessary. May raise an error. */
void debug_session_hook(struct debug_session *session, lua_State *L, lua_Debug *frame);
