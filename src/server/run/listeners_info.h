/* Fields of INFO about the addresses on which the server listens. */
#pragma once

#include "base/info_row.h"

extern const struct info_row listeners_info[];
