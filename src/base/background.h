/* Threads for work that must not keep a worker waiting: freeing large values, closing files, syncing. Jobs start in
 * the order they were submitted; with more than one thread they may overlap. */
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

void background_setup(unsigned thread_count); /* once, by the main thread */
void background_teardown(void);               /* likewise: runs what is left, then ends the threads */

/* Any thread, never blocks for long. Before background_setup, after teardown and in a forked child the job runs at
 * once, in the caller. */
void background_submit(enum background_kind kind, background_fn run, void *argument);

size_t background_pending(enum background_kind kind); /* submitted and not finished */
size_t background_done(enum background_kind kind);    /* finished since background_setup */
void background_drain(void);                          /* waits until nothing is pending; not from a job */

/* Called around each job, in its thread: a higher part makes the threads members of its gate. NULL: nothing. */
struct background_hooks {
    void (*thread_begin)(void); /* at the start of each background thread; set hooks before background_setup */
    void (*thread_end)(void);
    void (*before)(void);
    void (*after)(void);
};
void background_set_hooks(const struct background_hooks *hooks); /* the struct must stay */
