/* INFO: sections of lines "name:value", made from rows that every folder declares (base/info_row.h), in the order of
 * info_order.c. */
#pragma once

#include "base/buffer.h"
#include "base/info_row.h"
#include "base/slice.h"
#include "server/observe/info_order.h"

#include <stdbool.h>
#include <stddef.h>

/* Tables as parts publish them, used as they are. A row that no section names, and a name without a row, are mistakes
 * in the program and end it. Main thread, before the workers start. */
void info_setup(const struct info_row *const *tables, size_t table_count);

/* The same with sections of one's own. False: *problem says what does not fit. */
must_check bool info_arrange(const struct info_section *sections, size_t section_count,
                             const struct info_row *const *tables, size_t table_count, char *problem,
                             size_t problem_size);

/* --- any thread --- */

/* Appends the reply of INFO with these words; no word: the default sections. */
void info_write(struct buffer *text, const struct slice *words, size_t word_count);

/* Tells the fields with INFO_SAFE, in INFO's order, each section's title before its first. Async-signal-safe. */
void info_tell_safe(void (*title)(const char *title), void (*field)(const char *name, const char *value));
