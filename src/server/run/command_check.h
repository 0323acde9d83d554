/* Checks before a command runs: its name, permissions, memory, and the state of the client and the server. Each
 * function replies and returns true if the command must not run; the client's own worker. */
#pragma once

#include "server/core/worker.h"

/* Checks the command now. A refused command is counted as rejected, and makes its transaction fail. */
must_check bool command_check_refuses(struct client *client, const struct job *job);
/* Checks permissions again, since the rules of its user may have changed while it was parked. */
must_check bool command_check_refuses_meanwhile(struct client *client, const struct job *job);
/* Returns the error for this client's writes: files cannot be written, this server is a replica, or it has too few of
 * them; NULL: it may write. Any thread. */
enum { FAULT_DENIAL_SPACE = 256 };
const char *command_check_write_denial(const struct client *client, char room[FAULT_DENIAL_SPACE]);
/* True if the client gets only what the flag `stale` allows, otherwise this error. Any thread. */
bool command_check_is_stale(const struct client *client);
extern const char command_check_stale_denial[];
/* Refuses a command that would have to wait for a busy script. */
must_check bool command_check_refuses_busy(struct client *client, const struct job *job);
/* Worker 0, before it applies a write of the master, which cannot be refused. If the disk cannot keep it, ends the
 * process, or says so now and then: replica-ignore-disk-write-errors. */
void command_check_master_write(void);
