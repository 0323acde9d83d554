/* FAILOVER: a replica takes the place of this server, and no acknowledged write is lost.
 *
 *     none -> waiting-for-sync -> failover-in-progress -> none
 *
 * Writes are parked, and the target is asked for its offset. When it has applied everything, this server follows it and
 * says so with PSYNC ... FAILOVER, by which the target becomes a master; then the parked commands go on, and get
 * -READONLY. If the target refuses, or FAILOVER ABORT comes, this server is a master again. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle failover_lifecycle;

struct worker;

/* --- any thread --- */

bool failover_is_on(void);             /* costs a load */
const char *failover_state_word(void); /* as INFO shows it */
void failover_look_again(void);        /* a replica has said something new */

/* --- with the gate owned --- */

struct failover_wish {
    struct slice host; /* size 0: whichever replica has everything first */
    int port;
    int64_t timeout_ms; /* 0: none */
    bool has_timeout;
    bool force; /* after the timeout, whatever the target has */
};
/* Returns why it cannot begin; NULL: it has begun. From a command, in its worker's thread. */
const char *failover_begin(struct worker *worker, const struct failover_wish *wish);
must_check bool failover_abort(void); /* false: there is none */

/* --- worker 0's thread, outside of the gate: for the link to the master --- */

bool failover_asks_target(void);               /* PSYNC is to have FAILOVER */
void failover_was_answered(bool has_accepted); /* to such a PSYNC */
