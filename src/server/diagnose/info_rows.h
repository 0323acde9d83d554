/* The fields of INFO that belong to server/. */
#pragma once

#include "server/core/stats.h"
#include "server/observe/info.h"

extern const struct info_field info_thread_rows[]; /* info_threads.c: section keydb */
extern const size_t info_thread_row_count;

/* Adds the rows, and sets the start time and the replication id. Main thread, after info_setup, before the workers
 * start. */
void info_rows_setup(void);
/* Call it when everything is set up and there is no data yet: memory in use now is used_memory_startup. Likewise. */
void info_rows_mark_ready(void);
const struct server_stats *info_rows_stats(void); /* the statistics of the answer that this thread is writing */
