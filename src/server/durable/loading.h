/* Loading the data at start. The server answers meanwhile: commands that need no data run, others get the LOADING
 * error. A thread of its own owns the gate until everything is loaded. Now and then it opens the gate for commands that
 * wait for it. */
#pragma once

#include "base/compiler.h"
#include "server/config/command_block.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle loading_lifecycle;

struct server;

/* Before the workers start. False: the data cannot be read, the log has the reason; the server must not start. */
must_check bool loading_start(struct server *server);
/* Sets a function that the loading thread calls at its end, to free state of a thread; before loading_start. */
void loading_on_end(void (*leave)(void));
/* Sets a function that is called when the data is loaded, or there is none, or the server stops meanwhile; no other
 * thread is inside the gate then. Before loading_start. */
void loading_on_loaded(void (*loaded)(void));
void loading_join(void); /* after the workers have ended: stops the thread if it still runs */

static inline bool loading_runs(void)
{
    return (command_blocks() & COMMAND_BLOCK_LOADING) != 0;
}
extern const char loading_denial[]; /* the error for other commands, with its code */

struct loading_stats {
    int64_t start_s;
    uint64_t total_bytes, loaded_bytes, keys, memory_bytes;
    int64_t eta_s; /* -1: not known yet */
};
void loading_stats(struct loading_stats *stats); /* any thread */
