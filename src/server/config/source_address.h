/* bind-source-addr: the source address of connections that this server opens. */
#pragma once

#include <sys/socket.h>

/* The address of that family, with its size; 0: the option names none, or one of another family. Any thread. */
socklen_t source_address_get(int family, struct sockaddr_storage *address);
/* Binds a socket of that family before it is connected; any thread. Does nothing if the option names no address, or one
 * of another family. If the address is not available, it logs this, and the system chooses an address, as in Redis. */
void source_address_bind(int fd, int family);
