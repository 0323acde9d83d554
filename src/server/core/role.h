/* Whether this server follows a master, for the parts that act differently then: keys neither expire nor are evicted by
 * themselves, jobs do not run, clients may not write. src/replication decides it. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

extern _Atomic bool role_is_follower;       /* global: atomic: relaxed; changed with the gate owned */
extern _Atomic bool role_is_active_replica; /* global: likewise */

/* Any thread; costs a load. A thread that is inside sees no change until it leaves. */
static inline bool role_follows(void)
{
    return UNLIKELY(atomic_load_explicit(&role_is_follower, memory_order_relaxed));
}
/* This server takes writes although it has masters: they are peers (src/active). It does not follow. Any thread. */
static inline bool role_is_active(void)
{
    return atomic_load_explicit(&role_is_active_replica, memory_order_relaxed);
}
void role_set_active(bool is_active); /* with the gate owned; only for src/active */

/* With the gate owned; only for src/replication. Where a server begins to follow a master, clients that are blocked get
 * an error and are closed: what they wait for is not theirs to have any more. With CLIENT CAPA redirect they get that
 * of role_redirect, and stay. role_end_waits does that alone, where it follows another one. */
void role_set(bool follows);
void role_end_waits(void);
extern const char role_unblock_error[]; /* that error */
/* Writes the error for a client that knows to go to the master instead, "REDIRECT host:port". False: this server
 * follows none. Any thread, under no lock. */
enum { ROLE_REDIRECT_SPACE = 300 };
must_check bool role_redirect(char error[ROLE_REDIRECT_SPACE]);
/* Sets the function that writes "host:port". Only for src/replication, before the workers start. */
void role_provide_master(bool (*print)(char *address, size_t size));
/* Sets a function that role_set calls at its end. Before the workers start. */
void role_on_change(void (*changed)(void));
