/* Values of modules, which this server does not support: skips them. Their items say what they are, so this is
 * possible. */
#pragma once

#include "persist/rdb_read.h"

void rdb_module_name(uint64_t id, char name[10]);
must_check bool rdb_skip_module_items(struct rdb_reader *reader); /* up to the end of a value or of a record */
