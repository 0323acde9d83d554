/* replica.h: what a replica is sent: --rdb, --functions-rdb, --replica, and SYNC typed by a user. */
#pragma once

#include "tools/cli/session.h"

#include <stdbool.h>

int replica_run_rdb(struct session *session);    /* returns the exit code */
int replica_run_stream(struct session *session); /* until the server ends it */
/* Sends the words, which are SYNC or PSYNC, and prints what follows. Returns false, as the connection is none for
 * commands any more. */
must_check bool replica_follow(struct session *session, const struct slice *words, size_t word_count);
