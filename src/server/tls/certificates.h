/* The TLS context in use: made of the tls-* options at start, replaced when CONFIG SET changes one of them or, with
 * tls-rotation, when one of the files does. New connections take the newest, old ones keep theirs. A context that
 * cannot be made is reported and changes nothing. */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>

extern const struct lifecycle certificates_lifecycle;

struct tls_context;

void certificates_setup(void);    /* after config_setup: adds tls-rotation, listens for changes of tls-* options */
void certificates_teardown(void); /* main thread, the background's jobs are done */
/* For a new connection (tls_context_release when done); NULL: TLS is not configured. Any thread. */
struct tls_context *certificates_acquire(void);
/* CONFIG SET gave a TLS port: makes a context if there is none yet. NULL: fine; else why not. In
 * an exclusive section. */
const char *certificates_demand(void);
