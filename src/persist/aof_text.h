/* Converts records of the journal to the text of an append-only file. Each file selects its database itself, since it
 * is loaded by itself. Messages are left out. */
#pragma once

#include "base/buffer.h"
#include "store/journal.h"

#include <stdbool.h>

/* Zeroed memory, with db -1, is an empty text. */
struct aof_text {
    struct buffer bytes;
    int db;              /* database selected at the end; -1: none */
    bool in_transaction; /* the last record was not the end of a group */
};

void aof_text_add(struct aof_text *text, const struct journal_view *view); /* not for JOURNAL_MESSAGE */
