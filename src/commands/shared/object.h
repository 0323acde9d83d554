/* Facts that OBJECT and DEBUG OBJECT show. */
#pragma once

#include "store/entry.h"

/* Values are not shared here. But clients expect that small integers look shared, unless maxmemory is set with an LRU
 * or LFU policy. */
int64_t object_refcount(const struct entry *entry);
