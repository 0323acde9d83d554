/* What readers of the journal may cost. A replica that is slow costs a file: what it has not read yet and is more than
 * journal-memory-limit is moved there by a background thread. The append only file, if its disk is slow, costs time:
 * while it is more than aof-lag-limit behind, commands that write are parked, as in a pause. */
#pragma once

#include "base/compiler.h"
#include "store/journal.h"

struct server;

void journal_limits_setup(void);                         /* the options; once */
void journal_limits_start(struct journal *journal);      /* before the workers start */
void journal_limits_tend(struct journal *journal);       /* in the background */
void journal_limits_tell(const struct journal *journal); /* the log, from time to time, of who is kept waiting */

/* At the end of a turn; any worker. Costs a load. */
static inline void journal_limits_look(struct journal *journal)
{
    if (UNLIKELY(journal_wants_tending(journal)))
        journal_limits_tend(journal);
}
