/* CLIENT PAUSE: for a while commands are not run; dispatch parks them, and the end of the pause wakes all workers.
 * Keys do not expire and none is evicted meanwhile. Any thread, but for pause_begin. */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle pause_lifecycle;

struct client;
struct slice;
struct command;
struct server;
struct worker;

enum pause_mode { PAUSE_NONE, PAUSE_WRITES, PAUSE_ALL, PAUSE_FOR_LAG = 4 /* beside one of the others */ };

extern _Atomic uint32_t pause_mode; /* atomic, relaxed: enum pause_mode */

/* Costs a load. It may say true a little longer than it is: pause_holds looks at the clock. */
static inline bool pause_is_on(void)
{
    return UNLIKELY(atomic_load_explicit(&pause_mode, memory_order_relaxed) != PAUSE_NONE);
}

/* A pause that goes on already is prolonged, and becomes one of all commands if one of the two is; it never gets
 * shorter. In the thread of the worker, which sees to its end. */
void pause_begin(struct worker *worker, enum pause_mode mode, int64_t duration_ms);
void pause_end(struct server *server); /* any thread */
/* Writes wait, or no longer, for a reader of the journal; beside CLIENT PAUSE, which it neither ends nor begins. Any
 * thread, also under stripes. */
void pause_for_lag(bool lags);
void pause_for_lag_over(void); /* behind it: wakes who waits; under no lock */

bool pause_holds_writes(void); /* CLIENT PAUSE does, of either mode */
/* Must this command wait? In the client's worker's thread. */
bool pause_holds(const struct client *client, const struct command *command, const struct slice *args,
                 uint32_t arg_count);
