/* Words of the command line that make the program do something else than serve: --version, --help, --test-memory N,
 * --check-system, --is-flash-enabled; and names under which it is asked to be a program that it is not. */
#pragma once

#include <stdbool.h>

/* True: it was one of these; everything has been said, the program ends with *exit_status. Main thread, before
 * the workers start. */
bool config_run_word(int argc, char **argv, int *exit_status);
