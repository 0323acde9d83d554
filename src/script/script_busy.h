/* A script that runs for longer than busy-reply-threshold: it is known by its name, and may be ended if it has not
 * written. There is one at most: whoever runs a script has the scripts' turn or the gate (dispatch.h). */
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
/* In the thread of the script, now and then: is it too long, is it to end? May raise an error. All up to
 * script_busy_end are for that thread. */
void script_busy_look(lua_State *L, struct script_host *host);
/* Before a command that writes. False: the script is to end, it may not. */
bool script_busy_may_write(const struct script_run *run);
bool script_busy_is_to_end(const struct worker *worker); /* its script: SCRIPT KILL, or the server ends */
uint64_t script_busy_threshold_ms(void);                 /* UINT64_MAX: never */
void script_busy_end(const struct script_run *run);      /* it is over */

/* SCRIPT KILL, FUNCTION KILL. Any worker. */
void script_busy_kill(struct request *request, bool function);
void script_busy_reply(struct request *request); /* of FUNCTION STATS: what runs */
