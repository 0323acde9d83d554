/* What the files of live snapshots share. */
#pragma once

#include "store/snapshot_large.h"
#include "store/snapshot_live.h"
#include "store/snapshot_string.h"

/* There was a snapshot. */
struct larges *live_larges(const struct store *store);
struct long_strings *live_long_strings(const struct store *store);
