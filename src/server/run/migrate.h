/* MIGRATE: keys that move to another server.
 *
 *     command: values as payloads -> a thread: RESTORE there -> the client's worker: are they as they were? DEL, reply
 *
 * No stripe is held while the network is waited for. From the first step to the last the keys are in a registry, and
 * commands that may write to them are parked, as in CLIENT PAUSE; reads go on. A command that had passed that check
 * when the keys got into the registry may still change one: so the last step compares, and what has changed is sent
 * again.
 * One thread does all that waits, in order, and keeps connections for 10 seconds. Within EXEC and scripts, which are
 * one step for all others, the command waits itself with what it holds. */
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
    char *host, *port; /* owned: taken over */
    int64_t db;
    int timeout_ms;
    struct slice user, password; /* copied */
    bool copies, replaces;
};

/* The request's keys, with what its command holds; replies, now or later. */
void migrate_run(struct request *request, struct migrate_wish *wish);

/* Costs a load. */
static inline bool migrate_is_on(void)
{
    return (command_blocks() & COMMAND_BLOCK_MOVING) != 0;
}
/* Must this command wait until keys have moved? In the client's worker's thread. */
bool migrate_holds(const struct client *client, const struct command *command, const struct slice *args,
                   uint32_t arg_count, const struct key *keys, uint32_t key_count);

void migrate_stop(void);     /* main thread; the workers have ended */
void migrate_teardown(void); /* likewise, and are gone */
