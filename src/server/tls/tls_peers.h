/* tls-allowlist and tls-auditlog-blocklist: lists of patterns for the names in a client's certificate. The first says
 * which TLS clients are accepted, the second whose commands are not logged. */
#pragma once

#include "server/core/lifecycle.h"

extern const struct lifecycle tls_peers_lifecycle;

void tls_peers_setup(void);    /* after config_setup: adds the options */
void tls_peers_teardown(void); /* main thread, after the workers have ended */
