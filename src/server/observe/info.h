/* INFO: sections of lines "name:value", made from rows that every folder declares (base/info_row.h), in the order of
 * info_order.c. */
#pragma once

#include "base/buffer.h"
#include "base/info_row.h"
#include "base/slice.h"
#include "server/observe/info_order.h"

#include <stdbool.h>
#include <stddef.h>

/* Uses the tables of all parts, which must stay valid. A row that no section names, or a name without a row, is an
 * error of the program and ends it. Main thread, before the workers start. */
void info_setup(const struct info_row *const *tables, size_t table_count);

/* The same with other sections. False: *problem has the reason. */
must_check bool info_arrange(const struct info_section *sections, size_t section_count,
                             const struct info_row *const *tables, size_t table_count, char *problem,
                             size_t problem_size);

/* --- any thread --- */

/* Appends the reply of INFO with these words; no word: the default sections. */
void info_write(struct buffer *text, const struct slice *words, size_t word_count);

/* Calls `title` and `field` for the fields with INFO_SAFE, in INFO's order; `title` before the first field of each
 * section. Async-signal-safe. */
void info_tell_safe(void (*title)(const char *title), void (*field)(const char *name, const char *value));
