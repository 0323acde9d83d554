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
    /* Of the entry whose records come, if its stamp is not 0: */
    struct journal_stamp stamp;
    bool is_effect;           /* its effects have come: one, or the first ones of a transaction */
    bool is_ended;            /* its operations have come */
    uint32_t operation_count; /* of these, in the text */
    bool evicts;              /* it is an eviction */
};

/* Each record, also JOURNAL_MESSAGE, of which only what it says of operations is taken.
 *
 * Of an active node the text has operations, which it loads, and effects, which other programs load:
 *
 *     #order ORIGIN STAMP BEFORE WALL COUNT [SEEN]
 *                                              ends an entry: the last COUNT commands are its operations. BEFORE is how
 *                                              far the origin's stamp before is away, WALL how far the wall time is
 *                                              from the stamp's. Of an eviction it has the stamp that this saw. In a
 *                                              transaction it may be the last thing before EXEC
 *     ECHO operation                           an operation that is no effect; for others ECHO does nothing
 *     #plain                                   the next command is an effect, and no operation
 *
 * What came out of its order is in one transaction with the values that are right then. */
void aof_text_add(struct aof_text *text, const struct journal_view *view);
/* No more records of an entry come: one that has no effect is noted now. As records of something else do it. */
void aof_text_end(struct aof_text *text);
