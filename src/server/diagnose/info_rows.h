/* The fields of INFO that belong to no other part. */
#pragma once

#include "base/info_row.h"

extern const struct info_row info_rows[];
extern const struct info_row info_thread_rows[]; /* info_threads.c: section keydb */
extern const struct info_source info_rows_source;

void info_rows_setup(void); /* main thread, before the workers start */
/* Call it when everything is set up and there is no data yet: memory in use now is used_memory_startup. Likewise. */
void info_rows_mark_ready(void);
