/* descriptors.h: room for the sockets of maxclients clients beside the descriptors that the server needs itself. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* Raises the process' limit if that is necessary and allowed. False: there is room for *clients only, the log says why;
 * below 1 there is not enough to run at all. In an exclusive section, or before the workers start. */
must_check bool descriptors_make_room(int64_t *clients, unsigned worker_count);
