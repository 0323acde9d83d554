/* The TLS context in use: made of the tls-* options at start, replaced when CONFIG SET changes one of them or, with
 * tls-rotation, when one of the files does. New connections take the newest, old ones keep theirs. A context that
 * cannot be made is reported and changes nothing. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>

struct tls_context;
struct worker;

void certificates_setup(void); /* after config_setup: adds tls-rotation, listens for changes of tls-* options */
void certificates_teardown(void);
must_check bool certificates_start(void); /* before the workers start; false: the log says why */
/* For a new connection (tls_context_release when done); NULL: TLS is not configured. Any thread. */
struct tls_context *certificates_acquire(void);
/* CONFIG SET gave a TLS port: makes a context if there is none yet. NULL: fine; else why not. */
const char *certificates_demand(void);
/* Worker 0, each second: has a background thread look at the files, if tls-rotation says so. */
void certificates_look(struct worker *worker);
