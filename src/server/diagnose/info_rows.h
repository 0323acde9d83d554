/* The fields of INFO that belong to server/. */
#pragma once

#include "server/core/stats.h"
#include "server/observe/info.h"

extern const struct info_field info_thread_rows[]; /* info_threads.c: section keydb */
extern const size_t info_thread_row_count;

/* Adds the rows, and fixes the start time and the replication id. Main thread, after info_setup, before the workers
 * start. */
void info_rows_setup(void);
/* Everything is set up and no data is there yet: what is in use now is no data (used_memory_startup). Likewise. */
void info_rows_mark_ready(void);
const struct server_stats *info_rows_stats(void); /* the figures of the answer that this thread prints just now */
