/* Reading over values without making them: where they end is all that is found out. For who has others read them. */
#pragma once

#include "persist/rdb_read.h"

bool rdb_can_skim(unsigned type); /* a type whose shape is simple: all but streams and what modules have */
/* What stands behind type and key, of a type that can be skimmed. */
must_check bool rdb_skim_value(struct rdb_reader *reader, unsigned type);
