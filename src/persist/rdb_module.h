/* Values of modules, which are not here: read over, as their items say by themselves what they are. */
#pragma once

#include "persist/rdb_read.h"

void rdb_module_name(uint64_t id, char name[10]);
must_check bool rdb_skip_module_items(struct rdb_reader *reader); /* up to the end of a value, or of a record */
