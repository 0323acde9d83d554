/* Records of the journal as they stand in an append only file. Each file selects its database by itself, as it is
 * loaded by itself; messages are not in it. */
#pragma once

#include "base/buffer.h"
#include "store/journal.h"

#include <stdbool.h>

/* Zeroed memory, with db -1, is an empty one. */
struct aof_text {
    struct buffer bytes;
    int db;              /* that is selected where it ends; -1: none */
    bool in_transaction; /* the last record was not the end of what belongs together */
};

void aof_text_add(struct aof_text *text, const struct journal_view *view); /* no JOURNAL_MESSAGE */
