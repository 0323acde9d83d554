/* Recovers writes that a killed process had acknowledged but not yet written to its append-only file. They are in the
 * journal's tail (store/journal_tail.h), and are appended to the file before it is loaded. So loading, and every other
 * program, sees complete files.
 *
 *  1. The tail is used only as far as the file agrees with it: the bytes of the file behind the tail's place must be
 *     those of the tail. Then the missing bytes are appended. Doing this twice does no harm.
 *  2. Only complete transactions are appended. */
#pragma once

#include "base/compiler.h"
#include "persist/aof_manifest.h"

#include <stdbool.h>

/* By the main thread, before the workers start and before the files are read. False: appending is necessary but fails;
 * the log has the reason. */
must_check bool aof_tail_recover(const struct aof_manifest *manifest);
