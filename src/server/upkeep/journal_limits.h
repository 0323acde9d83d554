/* What readers of the journal may cost. A replica that is slow costs a file: what it has not read yet and is more than
 * journal-memory-limit is moved there by a background thread. The append only file, if its disk is slow, costs time:
 * while it is more than aof-lag-limit behind, commands that write are parked, as in a pause. */
#pragma once

#include "server/core/lifecycle.h"

extern const struct lifecycle journal_limits_lifecycle;

void journal_limits_setup(void); /* the options; main thread, once */
