/* Fields of INFO about scripts and functions. */
#pragma once

#include "base/info_row.h"

extern const struct info_row script_info[];
