/* The current TLS context: made from the tls-* options at start, and replaced when CONFIG SET changes one of them or,
 * with tls-rotation, when one of the files changes. New connections use the current context, old ones keep theirs. If a
 * context cannot be made, that is logged, and nothing changes. */
#pragma once

#include "base/compiler.h"
#include "base/info_row.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>

extern const struct lifecycle certificates_lifecycle;
extern const struct info_row certificates_info[];

struct tls_context;

void certificates_setup(void);    /* after config_setup: adds tls-rotation, and watches the tls-* options */
void certificates_teardown(void); /* main thread, after the background jobs have ended */
/* For a new connection; release it with tls_context_release. NULL: TLS is not configured. Any thread. */
struct tls_context *certificates_acquire(void);
uint64_t certificates_version(void); /* any thread; counts the contexts: another number, other certificates */
/* Call it when CONFIG SET has set a TLS port: makes a context if there is none yet. Returns NULL, or the reason why
 * not. In an exclusive section. */
const char *certificates_demand(void);
