/* A rendezvous: a reply that waits until other workers have passed a point.
 *
 * A command such as CLIENT KILL or CLIENT PAUSE changes state that other workers read, and must not reply while a
 * worker may still act on the old state. The command makes its change, writes its reply and calls rendezvous_begin.
 * From then on the client is blocked: its output is held and its next commands wait. Each worker that is asked passes
 * in its own thread, between two commands, and the last one to pass unblocks the client. No thread sleeps, no lock is
 * held, and other commands pay nothing.
 *
 * Inside EXEC the commands behind it in the same EXEC run at once; the reply of EXEC waits. */
#pragma once

#include "base/info_row.h"
#include "server/core/lifecycle.h"

#include <stdint.h>

extern const struct lifecycle rendezvous_lifecycle;
extern const struct info_row rendezvous_info[];

struct client;
struct worker;

enum rendezvous_kind {
    /* A worker passes when it has served the requests on its clients' cards (CLIENT KILL), also inside a script, unless
     * the client that runs the script is to be killed. */
    RENDEZVOUS_REQUESTS,
    /* A worker passes when no command or script that began before is still running, and when it has delivered all mail
     * that was posted before. */
    RENDEZVOUS_COMMANDS
};

static const uint64_t RENDEZVOUS_ALL = UINT64_MAX; /* every worker */

/* From a command of this client, in its worker's thread. Bit i of `workers` asks worker i. The client's own worker
 * passes by itself, since it runs this command. */
void rendezvous_begin(struct client *client, uint64_t workers, enum rendezvous_kind kind);

/* --- a worker's own thread --- */
void rendezvous_serve(struct worker *worker); /* after a wake, and inside a script */

/* The number of rendezvous, and the duration of the last and the longest. Any thread. */
struct rendezvous_stats {
    uint64_t count, last_us, most_us;
};
void rendezvous_stats(struct rendezvous_stats *stats);
