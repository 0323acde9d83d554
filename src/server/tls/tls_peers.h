/* Who may come in over TLS, and whose commands are written down: tls-allowlist and tls-auditlog-blocklist, both lists
 * of patterns for the names in a client's certificate. */
#pragma once

#include "server/core/lifecycle.h"

extern const struct lifecycle tls_peers_lifecycle;

void tls_peers_setup(void);    /* after config_setup: adds the options */
void tls_peers_teardown(void); /* main thread, after the workers have ended */
