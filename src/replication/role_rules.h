/* What the role of this server, and the options about it, forbid its clients: -READONLY, -MASTERDOWN and -NOREPLICAS.
 * Kept as command blocks (config/command_block.h), so that commands pay one load for all of them. */
#pragma once

#include "server/core/lifecycle.h"

#include <stdbool.h>

extern const struct lifecycle role_rules_lifecycle;

/* Looks again: the link to the master is up or down, or the number of good replicas has changed. The role, the options
 * and the time are looked at without a call. Any thread, under no lock. */
void role_rules_update(void);
/* Sets a function that says whether an active node lacks links, so that it answers as a replica without its master
 * where replica-serve-stale-data is no. Any thread. Before the workers start. */
void role_rules_provide(bool (*says)(void));
