/* Fields of INFO about saving, loading and the append-only file. */
#pragma once

#include "base/info_row.h"

extern const struct info_row durable_info[];
