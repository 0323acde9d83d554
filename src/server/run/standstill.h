/* DEBUG SLEEP: the whole server does nothing for a while, like a server with a single thread.
 *
 * Meanwhile no client gets a reply, even if its command needs no key. All commands that arrived meanwhile are taken up
 * before the first reply to any of them is sent. So a client that gets a reply finds the commands of other clients
 * done, also those of other workers' clients, unless a worker needs more than STANDSTILL_PATIENCE_US. */
#pragma once

#include <stdint.h>

struct lifecycle;
struct worker;

enum { STANDSTILL_PATIENCE_US = 100 * 1000 };

/* From a command that is alone with the data, in its worker's thread. */
void standstill(struct worker *worker, int64_t us);

extern const struct lifecycle standstill_lifecycle;
