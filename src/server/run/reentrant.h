/* While a script runs for long in a worker, the other clients of that worker are served from inside of it, so far as
 * that may be: commands that need no keys and are allowed while a script is busy (SCRIPT KILL, SHUTDOWN NOSAVE ...),
 * and -BUSY for all else. The script's stripes, and whatever it is in the middle of, stay as they are. */
#pragma once

struct worker;

/* In the worker's thread, from the script it runs. */
void reentrant_serve(struct worker *worker);
