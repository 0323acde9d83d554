/* CLIENT PAUSE: dispatch parks commands for a while, and the end of the pause wakes all workers. Meanwhile no key
 * expires or is evicted. Any thread, except for pause_begin. */
#pragma once

#include "base/compiler.h"
#include "base/info_row.h"
#include "server/core/lifecycle.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle pause_lifecycle;
extern const struct info_row pause_info[];

struct client;
struct slice;
struct command;
struct server;
struct worker;

enum pause_mode {
    PAUSE_NONE,
    PAUSE_WRITES,
    PAUSE_ALL,
    /* Reasons of this server for a pause of writes; any of them, together with one of the others. */
    PAUSE_FOR_LAG = 4,       /* a reader of the journal is too far behind */
    PAUSE_FOR_FAILOVER = 8,  /* a replica takes over */
    PAUSE_FOR_SHUTDOWN = 16, /* the server ends when its replicas have everything */
    PAUSE_FOR_FILE = 32,     /* too much of the journal waits for its file */
    PAUSE_FOR_BOUNDS = 64,   /* the identity of an active node is not written: stamps may not go further */
    PAUSE_FOR_SNAPSHOT = 128 /* too much waits to be written to a snapshot */
};
enum {
    PAUSE_REASONS = PAUSE_FOR_LAG | PAUSE_FOR_FAILOVER | PAUSE_FOR_SHUTDOWN | PAUSE_FOR_FILE | PAUSE_FOR_BOUNDS |
                    PAUSE_FOR_SNAPSHOT
};

extern _Atomic uint32_t pause_mode; /* global: atomic: relaxed; enum pause_mode */

/* Costs a load. May be true a little longer than the pause: pause_holds reads the clock. */
static inline bool pause_is_on(void)
{
    return UNLIKELY(atomic_load_explicit(&pause_mode, memory_order_relaxed) != PAUSE_NONE);
}

/* Begins a pause, or extends one: it never gets shorter, and if one of the two modes is PAUSE_ALL, the result is. In
 * the thread of the worker, which later ends the pause. */
void pause_begin(struct worker *worker, enum pause_mode mode, int64_t duration_ms);
void pause_end(struct server *server); /* any thread */
/* Starts or ends a pause of writes for this reason (one of PAUSE_REASONS), which is independent of CLIENT PAUSE. Any
 * thread, also under stripes. If the caller owns the gate, no command writes from then on. */
void pause_for(enum pause_mode reason, bool is_on);
void pause_for_lag(bool lags);
void pause_for_over(void); /* call it after the end of such a pause: wakes parked commands; under no lock */

void pause_for_snapshot(bool is_crowded); /* likewise */

/* True during CLIENT PAUSE of either mode, a failover or a shutdown, and while the journal waits for its file. */
bool pause_holds_writes(void);
/* True if this command must wait. In the client's worker's thread. */
bool pause_holds(const struct client *client, const struct command *command, const struct slice *args,
                 uint32_t arg_count);
