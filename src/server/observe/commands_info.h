/* Fields of INFO about commands and their errors: commandstats, errorstats, latencystats. */
#pragma once

#include "base/info_row.h"

extern const struct info_row commands_info[];
