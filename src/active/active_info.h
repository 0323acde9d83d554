/* What INFO tells of an active node: its masters, as clients read them of a replica, and in fields of their own. */
#pragma once

#include "base/info_row.h"

extern const struct info_row active_info[];
