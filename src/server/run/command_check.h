/* What stands against running a command: that there is none of that name, rights, memory, the state of the client or of
 * the server. Each call replies and returns true if something does; the client's own worker. */
#pragma once

#include "server/core/worker.h"

/* What stands against it now; it is counted as rejected, and spoils the transaction it was for. */
must_check bool command_check_refuses(struct client *client, const struct job *job);
/* Its user may have been given other rules while it was parked. */
must_check bool command_check_refuses_meanwhile(struct client *client, const struct job *job);
/* What a write hears while snapshots, or the append only file, fail; NULL: they do not. Any thread. */
enum { FAULT_DENIAL_SPACE = 256 };
const char *command_check_write_denial(char room[FAULT_DENIAL_SPACE]);
/* Does a script that runs for long stand in its way? Then it does not wait. */
must_check bool command_check_refuses_busy(struct client *client, const struct job *job);
