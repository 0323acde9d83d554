/* Options of RDB files and DUMP payloads. Any thread, but for strings: see options.h. */
#pragma once

#include "persist/rdb_write.h"

void rdb_options_setup(void); /* after config_setup: adds the rows */

/* How payloads of DUMP are written: as rdb-version says. */
struct rdb_write_options rdb_payload_options(void);
