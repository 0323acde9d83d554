/* The process title that ps shows: `proc-title-template`, written over the memory of the arguments and the
 * environment. */
#pragma once

#include <stdbool.h>

/* First of all in main, before there are other threads: copies the arguments and the environment, whose memory is used
 * for the title. Returns the copy of argv; use it from then on. */
char **process_title_setup(int argc, char **argv);
void process_title_teardown(void); /* main thread, after the workers have ended */

/* Writes the title by the current options. False: there is no room, or set-proc-title is no. Main thread, or in an
 * exclusive section. */
bool process_title_update(void);
