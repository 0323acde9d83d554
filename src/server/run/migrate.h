/* MIGRATE: moves keys to another server.
 *
 *     command: values as payloads -> a thread: RESTORE there -> the client's worker: values unchanged? DEL, reply
 *
 * No stripe is held while waiting for the network. From the first step to the last the keys are in a registry, and
 * commands that may write to them are parked, as in CLIENT PAUSE; reads continue. A command that passed this check
 * before the keys were registered may still change one. So the last step compares the values, and changed ones are sent
 * again.
 *
 * One thread does all that waits, in order, and keeps connections open for 10 seconds. Within EXEC and scripts, which
 * are one step for all other clients, the command itself waits and keeps what it holds. */
#pragma once

#include "server/config/command_block.h"
#include "server/core/lifecycle.h"
#include "server/core/request.h"
#include "server/run/migrate_link.h"

extern const struct lifecycle migrate_lifecycle;

struct client;
struct command;
struct worker;

struct migrate_wish {
    char *host, *port; /* taken over */
    int64_t db;
    int timeout_ms;
    struct slice user, password; /* copied */
    bool copies, replaces;
};

/* Migrates the request's keys, with what its command holds; replies now or later. */
void migrate_run(struct request *request, struct migrate_wish *wish);

/* Costs a load. */
static inline bool migrate_is_on(void)
{
    return (command_blocks() & COMMAND_BLOCK_MOVING) != 0;
}
/* True if this command must wait until keys have moved. In the client's worker's thread. */
bool migrate_holds(const struct client *client, const struct command *command, const struct slice *args,
                   uint32_t arg_count, const struct key *keys, uint32_t key_count);

void migrate_stop(void);     /* main thread, after the workers have ended */
void migrate_teardown(void); /* main thread, after the workers are gone */
