/* shell.h: commands from standard input: typed at a terminal, or a line each. */
#pragma once

#include "tools/cli/session.h"

/* Returns the exit code. Runs until the input ends or somebody says quit. */
int shell_run(struct session *session);

/* Reads a password from the terminal, or a line of standard input. NULL: none. The caller frees it. */
char *shell_ask_password(void);
