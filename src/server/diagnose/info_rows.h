/* The fields of INFO that belong to server/. */
#pragma once

#include "server/core/stats.h"
#include "server/diagnose/info.h"

enum { INFO_ID_SIZE = 40 };

extern const struct info_field info_server_rows[];
extern const size_t info_server_row_count;
extern const struct info_field info_thread_rows[]; /* info_threads.c: section keydb */
extern const size_t info_thread_row_count;

void info_rows_setup(void);
void info_rows_mark_ready(void);
/* Between these the rows of this thread print these figures. */
void info_rows_begin(const struct server_stats *stats);
void info_rows_end(void);
const struct server_stats *info_rows_stats(void); /* these figures, between the two */
