/* Command line words that make the program do something else than serve: --version, --help, --test-memory N,
 * --check-system, --is-flash-enabled. Also program names that belong to other programs. */
#pragma once

#include <stdbool.h>

/* True: the command line has one of these words; everything was printed, and the program ends with *exit_status. Main
 * thread, before the workers start. */
bool config_run_word(int argc, char **argv, int *exit_status);
