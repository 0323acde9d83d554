/* What the files of live snapshots share. */
#pragma once

#include "store/snapshot_large.h"
#include "store/snapshot_live.h"

struct larges *live_larges(const struct store *store); /* there was a snapshot */
