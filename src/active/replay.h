/* Places the entries that an append-only file has behind its base, as they were placed before: so the node has their
 * lists, tombstones and dirty marks again, and what comes late is late no more than it was. At the start they go into
 * the history, too: peers that lack some of them get them. One thread, which is alone with the data. */
#pragma once

#include "merge/vector.h"
#include "server/durable/data_order.h"

/* `deeds`: of the base; copied. has_state: it says so; else the keys that it has are in no history. */
void replay_begin(const struct merge_vector *deeds, bool has_state);
void replay_place(struct worker *worker, const struct data_order_entry *given);
void replay_end(void);
