/* pipe.h: --pipe: standard input goes to the server as it is, and the replies are counted. */
#pragma once

#include "tools/cli/session.h"

int pipe_run(struct session *session); /* returns the exit code: 0 without an error reply */
