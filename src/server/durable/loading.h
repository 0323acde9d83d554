/* Reading the data at start. The server answers meanwhile: commands that need no data run, others hear that it loads.
 * A thread of its own owns the gate until everything is there; now and then it lets those in who wait for the gate. */
#pragma once

#include "base/compiler.h"
#include "server/config/command_block.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle loading_lifecycle;

struct server;

/* Before the workers start. False: the data cannot be read, the log says why; the server must not start. */
must_check bool loading_start(struct server *server);
/* What the thread does in the end, for those who keep something a thread; before loading_start. */
void loading_on_end(void (*leave)(void));
/* To be called when the data is there, or there is none, or the server stops meanwhile; nobody else is inside the gate.
 * Before loading_start. */
void loading_on_loaded(void (*loaded)(void));
void loading_join(void); /* the workers have ended: stops it if it still runs */

static inline bool loading_runs(void)
{
    return (command_blocks() & COMMAND_BLOCK_LOADING) != 0;
}
extern const char loading_denial[]; /* what others hear, with its code */

struct loading_stats {
    int64_t start_s;
    uint64_t total_bytes, loaded_bytes, keys, memory_bytes;
    int64_t eta_s; /* -1: nobody can tell yet */
};
void loading_stats(struct loading_stats *stats); /* any thread */
