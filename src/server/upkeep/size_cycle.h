/* How large the values are: INFO keysizes. For each database and each type it counts values by size, in classes from
 * one power of two to the next: bytes of strings, elements of lists, sets, sorted sets and hashes.
 *
 *     db0_distrib_strings_sizes:0=3,1=12,64=70000,1K=9
 *
 * Writers do not count. Whoever asks gets what the last walk has counted, and by that begins another one, unless that
 * is younger than SIZE_CYCLE_FRESH_US. Worker 0 walks in slices of SIZE_CYCLE_SLICE_US and pauses in between, so that
 * it takes SIZE_CYCLE_PERCENT of a processor's time; a slice that nobody waits behind may take SIZE_CYCLE_IDLE_US. What
 * changes meanwhile may be counted as it was before or after; a key that goes or is renamed may be missed, or counted
 * twice. Expired keys and members count until they are removed. */
#pragma once

#include "base/info_row.h"
#include "server/core/lifecycle.h"

enum { SIZE_CYCLE_SLICE_US = 500, SIZE_CYCLE_IDLE_US = 10 * 1000, SIZE_CYCLE_PERCENT = 10 };
enum { SIZE_CYCLE_FRESH_US = 1000 * 1000 };

extern const struct lifecycle size_cycle_lifecycle;
extern const struct info_row size_cycle_info[];
