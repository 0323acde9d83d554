/* Background threads for work that must not delay a worker: freeing large values, closing files, syncing.
 *
 * Freeing has threads of its own: many large values take seconds, and a commit of a file, a name that is looked up or
 * the journal's way to its file must not stand behind them. Jobs that free start in the order in which they were
 * submitted, and so do all others among themselves. The two overlap, and with more than one thread each also jobs of
 * the same kind. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

enum background_kind {
    BACKGROUND_FREE = 0,
    BACKGROUND_CLOSE,
    BACKGROUND_SYNC,
    BACKGROUND_OTHER,
    BACKGROUND_KIND_COUNT
};

typedef void (*background_fn)(void *argument);

/* Once, by the main thread: so many threads for freeing, named "lazyfree", and as many for the rest, "background". */
void background_setup(unsigned thread_count);
void background_teardown(void); /* by the main thread; runs the jobs that are left, then ends the threads */

/* Any thread may call it. It never blocks for long. Before background_setup, after background_teardown and in a forked
 * child the job runs at once, in the caller's thread. */
void background_submit(enum background_kind kind, background_fn run, void *argument);

size_t background_pending(enum background_kind kind); /* jobs submitted and not finished */
size_t background_done(enum background_kind kind);    /* jobs finished since background_setup */
void background_drain(void);                          /* waits until no job is pending; must not be called from a job */

/* Functions that the background threads call. A higher part uses them to make the threads members of its gate. `before`
 * and `after` run around each job. NULL: nothing is called. */
struct background_hooks {
    void (*thread_begin)(void); /* at the start of each background thread; set the hooks before background_setup */
    void (*thread_end)(void);
    void (*before)(void);
    void (*after)(void);
};
void background_set_hooks(const struct background_hooks *hooks); /* the struct must stay valid */
