/* INFO replication, and what other sections of INFO tell of replication. */
#pragma once

#include "base/info_row.h"
#include "server/core/lifecycle.h"

#include <stdint.h>

extern const struct info_row replication_info[];
extern const struct lifecycle replication_info_lifecycle;

void replication_info_setup(void);        /* main thread, after config_setup */
uint64_t replication_backlog_bytes(void); /* memory of the journal, while it is kept for replicas; any thread */
