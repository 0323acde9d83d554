/* Who may come in over TLS, and whose commands are written down: tls-allowlist and tls-auditlog-blocklist, both lists
 * of patterns for the names in a client's certificate. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct client;
struct request;
struct worker;

extern _Atomic uint32_t tls_audit_count; /* atomic, relaxed: clients of all workers whose commands are written down */

static inline bool tls_audit_is_on(void)
{
    return UNLIKELY(atomic_load_explicit(&tls_audit_count, memory_order_relaxed) != 0);
}

void tls_peers_setup(void); /* after config_setup: adds the options */
void tls_peers_teardown(void);
void tls_peers_start(void); /* the files have been read: from now on a list may be set anew */

/* The client's own worker, after its handshake. False: it is not on the allowlist (the log says so). */
must_check bool tls_peers_admit(struct client *client);
void tls_peers_leave(struct client *client); /* at its end */

void tls_audit_note(const struct request *request); /* a command that has just run; stripes may be held */
void tls_audit_flush(struct worker *worker);        /* its thread, no lock held: logs what was noted */
