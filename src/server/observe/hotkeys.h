/* HOTKEYS: the keys on which commands spend most time, and those with most bytes of requests and replies, found in one
 * session at a time. While there is no session, commands do nothing for it: the one number that command_log.h compares
 * with the size of each request lets them come here. */
#pragma once

#include "base/info_row.h"
#include "base/slice.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const struct lifecycle hotkeys_lifecycle;
extern const struct info_row hotkeys_info[];

struct request;

enum hotkeys_metric { HOTKEYS_CPU, HOTKEYS_NET, HOTKEYS_METRICS };
enum {
    HOTKEYS_COUNT_MOST = 64,
    HOTKEYS_SECONDS_MOST = 1000000,
    HOTKEYS_NAME_BYTES_MOST = 4096 /* longer keys are not listed, so that memory is limited */
};

struct hotkeys_plan {
    bool wants[HOTKEYS_METRICS];
    uint32_t count;    /* keys to list for each metric, 1 to HOTKEYS_COUNT_MOST */
    int64_t seconds;   /* until it ends by itself; 0: it does not */
    uint64_t sampling; /* of this many commands with keys one is looked at; at least 1 */
};

struct hotkeys_report {
    struct hotkeys_plan plan;
    bool is_active;
    int64_t start_wall_ms;
    uint64_t duration_ms;
    uint64_t commands_us, commands_bytes; /* all commands, also those without keys */
    uint64_t user_ms, system_ms;          /* of the process, all threads */
    uint64_t net_bytes;                   /* of all connections */
};

struct hotkeys_key {
    struct slice name; /* valid until the exclusive section ends */
    uint64_t amount;   /* nanoseconds or bytes; at least this much, as far as commands were looked at */
};

void hotkeys_setup(void); /* main thread, before the workers start */

/* --- in an exclusive section --- */

/* Begins a session, and forgets an earlier one that has ended. False: a session is active. */
must_check bool hotkeys_start(const struct hotkeys_plan *plan);
must_check bool hotkeys_stop(void);  /* false: none is active. What it found stays. */
must_check bool hotkeys_reset(void); /* forgets what was found. False: a session is active */
/* The keys with the largest amounts, largest first, at most HOTKEYS_COUNT_MOST; returns how many. */
size_t hotkeys_list(enum hotkeys_metric metric, struct hotkeys_key *keys);

/* --- any thread --- */

/* False: there was no session since the last reset. */
must_check bool hotkeys_report(struct hotkeys_report *report);

bool hotkeys_is_active(void);

/* The worker's thread, for a command that has run from `start` to `end` (ticks), with the bytes of its request and its
 * reply; within the gate if it has keys. Does nothing for a command that began before the session. */
void hotkeys_note(const struct request *request, uint64_t start, uint64_t end, uint64_t bytes);
