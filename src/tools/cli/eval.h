/* eval.h: --eval: a script from a file, and its debugger (--ldb). */
#pragma once

#include "tools/cli/session.h"

#include <stdbool.h>

struct eval;

/* Runs the script; the words of the command line are its keys, a comma, its arguments. With --ldb it begins a session
 * of the debugger, which the shell then leads. Returns the exit code; -1: the shell goes on. */
int eval_run(struct session *session);
void eval_destroy(struct eval **handle); /* accepts NULL */

/* For the shell, while session->is_debugging: a command of the debugger. False: the program ends. */
must_check bool eval_debug(struct session *session, const struct slice *words, size_t word_count);
must_check bool eval_restart(struct session *session);
