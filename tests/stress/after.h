/* State that must not change after a reply: of CLIENT KILL, CLIENT UNBLOCK, CLIENT PAUSE. Roles for a part that makes
 * the load; each is one thread's, returns at `end_ns`, and complains. Keys of their own begin with "after". */
#pragma once

#include "stress.h"

struct after {
    int port;
    uint64_t seed, end_ns;
    _Atomic uint64_t kills, pauses;
};

/* Makes clients that write, wait or listen, and kills them: afterwards they have no effect. */
void after_kill(struct after *after, unsigned index);
/* Pauses all writes now and then: afterwards nothing of `read`, a command, changes until the end of the pause. */
void after_pause(struct after *after, const char *const *reads, unsigned read_count, unsigned index);
