/* availability-zone: a text that INFO server shows, for clients that prefer servers nearby. */
#pragma once

#include "base/info_row.h"

void availability_zone_setup(void); /* after config_setup: adds the option */
void availability_zone_start(void); /* main thread, the configuration was read */

extern const struct info_row availability_zone_info[];
