/* INFO: sections of lines "name:value", made from rows that every folder declares (base/rows.h). Sections are printed
 * in the order of the list in info.c, rows of a section in the order in which their tables were added. */
#pragma once

#include "base/buffer.h"
#include "base/rows.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

enum { INFO_ID_SIZE = 40 }; /* hex digits */

/* --- at start: by the main thread, before the workers start --- */

/* Fixes the run id. Before the first info_add_rows. */
void info_setup(void);
void info_teardown(void); /* after the workers have ended */

/* Ended by `count`; used as it is. A section that is not in the list of info.c is a mistake in the program. */
void info_add_rows(const struct info_field *rows, size_t count);

/* Called around the rows of one answer, in its thread: to collect figures once, so that it is made of one picture. */
void info_on_write(void (*begin)(void), void (*end)(void));

/* --- any thread --- */

/* What INFO with these words would print; no word: the default sections. */
void info_write(struct buffer *text, const struct slice *words, size_t word_count);

const char *info_run_id(void); /* 40 hex digits, of this run of the program */
