/* Counters since CONFIG RESETSTAT. Workers only increase their counters, so a reset stores their values, and INFO shows
 * the difference. Any thread may ask. */
#pragma once

#include "server/core/stats.h"

void stats_since_setup(void);    /* main thread, before the workers start; after config_setup */
void stats_since_teardown(void); /* main thread, after the workers have ended */
void stats_since_reset(void);    /* in an exclusive section */

/* Like the functions of stats.h with similar names. */
void stats_since_collect(struct server_stats *stats);
bool stats_since_command(uint32_t command_id, struct command_stats *stats);
void stats_since_errors(void (*visit)(void *context, const char *code, uint64_t count), void *context);
