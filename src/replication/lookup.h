/* The addresses of a host name. A name is looked up in the background thread, as that may take long. A lookup
 * has one owner, a thread. */
#pragma once

#include "base/compiler.h"

#include <netdb.h>
#include <stdbool.h>

struct lookup;

/* A job of the background thread calls `on_done`. An address in digits is known at once, without that call. */
struct lookup *lookup_create(const char *host, int port, void (*on_done)(void));
void lookup_release(struct lookup **handle); /* does not wait; accepts NULL; leaves NULL */
bool lookup_is_done(const struct lookup *lookup);
/* When it is done: at least one address, valid as long as the lookup. NULL: *error has the reason. */
const struct addrinfo *lookup_addresses(const struct lookup *lookup, const char **error);
