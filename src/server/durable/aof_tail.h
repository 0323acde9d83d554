/* What a process that was killed had acknowledged and not yet written to its append only file: it stands in the
 * journal's tail (store/journal_tail.h), and is appended to the file before that is loaded. So loading, and every other
 * program, sees whole files.
 *
 *  1. The tail is believed only as far as the file agrees with it: what the file has behind the tail's place must be
 *     what the tail has there. Then what the file lacks is appended, and it does no harm to do that again.
 *  2. Only whole transactions are appended. */
#pragma once

#include "base/compiler.h"
#include "persist/aof_manifest.h"

#include <stdbool.h>

/* At start, before the files are read. False: something is to be appended and cannot be, the log says why. */
must_check bool aof_tail_recover(const struct aof_manifest *manifest);
