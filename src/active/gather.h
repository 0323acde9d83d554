/* From records of the journal to entries of frames: the records of one stamp are one entry. An owner. */
#pragma once

#include "active/frame.h"
#include "store/journal.h"

struct gather;

struct gather *gather_create(void);
void gather_destroy(struct gather **gather); /* accepts NULL; leaves NULL */
void gather_clear(struct gather *gather);    /* forgets the records of an entry that is not complete */
/* Takes the next record with a stamp (view->stamp). Returns the entry with whose last record this is; it is valid as
 * long as the view is, and until the next call. NULL: more records of it follow. */
const struct frame_entry *gather_take(struct gather *gather, const struct journal_view *view);
/* The same, and adds the entry to the writer. False: more records of it follow. */
bool gather_write(struct gather *gather, const struct journal_view *view, struct frame_writer *writer);
