/* Reading over values without making them: where they end is all that is found out. For who has others read them. */
#pragma once

#include "persist/types.h"

/* Is its shape simple? So are all but those of streams, jobs and what modules have. */
static inline bool rdb_can_skim(const struct rdb_form *form)
{
    return form->head != NULL;
}

/* What stands behind type and key, in a form that can be skimmed. */
must_check bool rdb_skim_value(struct rdb_reader *reader, const struct rdb_form *form);
