/* A thread that signals scripts that have run for a while: the handler of the signal, in the script's thread, makes Lua
 * call its hook before the next instruction. The hook's own count is not sufficient: one instruction or function may
 * take a second (joining long texts, walking a large table), and thousands of them take hours.
 *
 * The thread sleeps while no script runs. Where signals come late (the thread sanitizer delays them), the hook's count
 * remains. */
#pragma once

#include <stdbool.h>

struct worker;

/* Main thread; `ring` is called in the script's thread, from a signal handler. */
void script_watch_setup(void (*ring)(void));
void script_watch_teardown(void); /* main thread, after the workers have ended */
/* In the worker's thread, at the start and the end of a script. Not in a forked child. */
void script_watch_begin(const struct worker *worker);
void script_watch_end(const struct worker *worker);
