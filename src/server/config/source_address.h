/* bind-source-addr: where connections that we make ourselves come from. */
#pragma once

#include <stdbool.h>

/* Binds a socket of that family that is not connected yet; any thread. Where the option names no address, or one of
 * another family, nothing is done. An address that is not to be had is told in the log, and the socket stays as it
 * was: then the system chooses one, as with Redis. */
void source_address_bind(int fd, int family);
