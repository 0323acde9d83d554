/* Serves the other clients of a worker from inside a script that runs for long: commands that need no keys and are
 * allowed while a script is busy (SCRIPT KILL, SHUTDOWN NOSAVE ...) run, all others get -BUSY. The state of the script
 * and its stripes do not change. */
#pragma once

struct worker;

/* In the worker's thread, from the script it runs. */
void reentrant_serve(struct worker *worker);
