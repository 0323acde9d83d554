/* What OBJECT tells and DEBUG OBJECT repeats. */
#pragma once

#include "store/entry.h"

/* Values are not shared here, but clients know small integers as shared by all who hold one, unless a limit of memory
 * is kept by the last or the frequent use of keys. */
int64_t object_refcount(const struct entry *entry);
