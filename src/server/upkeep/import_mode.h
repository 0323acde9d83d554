/* import-mode: while another server's data are copied here, that server says when keys go. None expires or is evicted
 * here: to clients a key beyond its deadline is absent, as on a replica, until a write finds it. A client that has sent
 * CLIENT IMPORT-SOURCE ON sees it and may set deadlines in the past. State: STORE_KEEPS_IMPORTING. An active node does
 * not import, since all of its nodes decide together, and a replica has its master's deadlines anyway. */
#pragma once

#include "server/core/lifecycle.h"

extern const struct lifecycle import_mode_lifecycle;

void import_mode_setup(void); /* main thread; after config_setup: adds the option */
