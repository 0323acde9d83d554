/* INFO: sections with lines "name:value", made from rows that every folder declares (base/rows.h). Sections have the
 * order of the list in info.c; the rows of a section have the order in which their tables were added. */
#pragma once

#include "base/buffer.h"
#include "base/rows.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

enum { INFO_ID_SIZE = 40 }; /* hex digits */

/* --- at start: by the main thread, before the workers start --- */

/* Sets the run id. Before the first info_add_rows. */
void info_setup(void);
void info_teardown(void); /* after the workers have ended */

/* Adds `count` rows; the table must stay valid. A section that is not in the list of info.c is an error of the
 * program. */
void info_add_rows(const struct info_field *rows, size_t count);

/* Called before and after the rows of one answer, in the thread that writes it: to collect statistics once, so that the
 * answer is consistent. */
void info_on_write(void (*begin)(void), void (*end)(void));

/* --- any thread --- */

/* Appends the reply of INFO with these words; no word: the default sections. */
void info_write(struct buffer *text, const struct slice *words, size_t word_count);

const char *info_run_id(void); /* 40 hex digits; each run of the program has its own */
