/* A thread that rings when a script has run for a while: a signal to the thread that runs it, whose handler has Lua's
 * hook called before the next instruction. The hook's own count does not do: an instruction or a function may take a
 * second (joining long texts, walking a large table), and then thousands of them are hours.
 *
 * It sleeps while no scripts are run. Where the signal comes late (the thread sanitizer keeps signals back), the hook's
 * count is what remains. */
#pragma once

#include <stdbool.h>

struct worker;

void script_watch_setup(void (*ring)(void)); /* main thread; called in the script's, from a signal handler */
void script_watch_teardown(void);            /* main thread, after the workers have gone */
/* The worker's thread begins and ends to run a script. Not in a forked child. */
void script_watch_begin(const struct worker *worker);
void script_watch_end(const struct worker *worker);
