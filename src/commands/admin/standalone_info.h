/* Fields of INFO as a server without replicas and without a cluster has them. */
#pragma once

#include "base/info_row.h"

extern const struct info_row standalone_info[];
