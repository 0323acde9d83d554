/* Scripts that run for longer than busy-reply-threshold: their name is known, and they can be ended if they have not
 * written. There is at most one for each worker. Several are there at a time if they run beside each other
 * (script_turn.h). */
#pragma once

#include <lua.h>

#include <stdbool.h>
#include <stdint.h>

struct request;
struct script_host;
struct script_run;
struct worker;

void script_busy_setup_options(void); /* main thread, after config_setup: adds the option */
void script_busy_setup(void);         /* main thread */
/* In the thread of the script, now and then: checks whether it runs for too long or must end. May raise an error. All
 * functions up to script_busy_end are for that thread. */
void script_busy_look(lua_State *L, struct script_host *host);
/* Call it before a command that writes. False: the script must end and may not write. */
bool script_busy_may_write(const struct script_run *run);
/* True if its script must end: SCRIPT KILL, or the server ends. */
bool script_busy_is_to_end(const struct worker *worker);
uint64_t script_busy_threshold_ms(void);            /* UINT64_MAX: never */
void script_busy_end(const struct script_run *run); /* the script has ended */

/* SCRIPT KILL, FUNCTION KILL: ends all that may be ended; an error if there is none. Any worker. */
void script_busy_kill(struct request *request, bool function);
void script_busy_reply(struct request *request); /* for FUNCTION STATS: the running function */
