/* Fields of INFO about memory. */
#pragma once

#include "base/info_row.h"

extern const struct info_row memory_info[];
