/* INFO: sections of lines "name:value", made from rows that every folder declares (base/rows.h). Sections are printed
 * in the order of the list in info.c, rows of a section in the order in which their tables were added. */
#pragma once

#include "base/buffer.h"
#include "base/rows.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

/* Adds the rows of server/ itself and fixes the start time and the run id. After config_setup, before the workers
 * start. */
void info_setup(void);
void info_teardown(void);
/* Everything is set up and no data is there yet: what is in use now is no data (used_memory_startup). */
void info_mark_ready(void);

/* Ended by `count`; used as it is. A section that is not in the list of info.c is a mistake in the program. */
void info_add_rows(const struct info_field *rows, size_t count);

/* What INFO with these words would print; no word: the default sections. Any thread. */
void info_write(struct buffer *text, const struct slice *words, size_t word_count);

const char *info_run_id(void); /* 40 hex digits, of this run of the program */
