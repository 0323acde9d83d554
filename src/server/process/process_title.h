/* What ps shows of this process: `proc-title-template` written over the memory where the system put the arguments and
 * the environment. */
#pragma once

#include <stdbool.h>

/* First of all in main, before there are other threads: takes copies of the arguments and the environment, which lose
 * their places. The copy of argv, to be used from then on. */
char **process_title_setup(int argc, char **argv);
void process_title_teardown(void); /* main thread, after the workers have ended */

/* As the options say now. False: there is no room or set-proc-title is no. Main thread, or in an exclusive section. */
bool process_title_update(void);
