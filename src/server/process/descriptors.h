/* descriptors.h: the limit of open files: sockets for maxclients clients, and the descriptors that the server itself
 * needs. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* Raises the limit of the process if necessary and allowed. False: there is room for only *clients clients; the reason
 * is in the log. Below 1 the server cannot run. In an exclusive section, or before the workers start. */
must_check bool descriptors_make_room(int64_t *clients, unsigned worker_count);
