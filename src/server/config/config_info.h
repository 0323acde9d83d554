/* Fields of INFO about the program, its files and its options. */
#pragma once

#include "base/info_row.h"

extern const struct info_row config_info[];
