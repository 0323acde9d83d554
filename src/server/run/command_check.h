/* Checks before a command runs: its name, permissions, memory, and the state of the client and the server. Each
 * function replies and returns true if the command must not run; the client's own worker. */
#pragma once

#include "server/core/worker.h"

/* Checks the command now. A refused command is counted as rejected, and makes its transaction fail. */
must_check bool command_check_refuses(struct client *client, const struct job *job);
/* Checks permissions again, since the rules of its user may have changed while it was parked. */
must_check bool command_check_refuses_meanwhile(struct client *client, const struct job *job);
/* Returns the error for writes while snapshots or the append-only file fail; NULL: they do not. Any thread. */
enum { FAULT_DENIAL_SPACE = 256 };
const char *command_check_write_denial(char room[FAULT_DENIAL_SPACE]);
/* Refuses a command that would have to wait for a busy script. */
must_check bool command_check_refuses_busy(struct client *client, const struct job *job);
