/* The end of the server waits until its replicas have everything, at most for shutdown-timeout, with writes paused. */
#pragma once

#include "base/compiler.h"
#include "base/info_row.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle shutdown_wait_lifecycle;
extern const struct info_row shutdown_wait_info[];

struct client;
struct worker;

/* What is waited for: src/replication fills it in. Any thread. */
struct shutdown_wait {
    bool (*is_over)(void);       /* nothing is missing any more */
    int64_t (*timeout_ms)(void); /* 0: no waiting */
    void (*log_end)(void);       /* the waiting is over, or the time */
};
void shutdown_wait_provide(const struct shutdown_wait *wait); /* before the workers start; stays valid */

/* --- any thread --- */

bool shutdown_waits(void); /* costs a load */
/* Begins to wait, or goes on; the server ends later with these flags (enum shutdown_flag). The client, whose command
 * this is, is blocked until then; NULL: none. False: nothing is to be waited for. */
must_check bool shutdown_wait_begin(struct client *client, unsigned flags);
void shutdown_wait_look_again(void); /* a replica has said something new */
bool shutdown_wait_abort(void);      /* false: nothing waits. The clients get an error */
