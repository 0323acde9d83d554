/* Fields of INFO about the process and the machine. */
#pragma once

#include "base/info_row.h"

extern const struct info_row process_info[];
