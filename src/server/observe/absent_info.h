/* Fields of INFO about what this server does not have: other servers print them, here they never change. */
#pragma once

#include "base/info_row.h"

extern const struct info_row absent_info[];
