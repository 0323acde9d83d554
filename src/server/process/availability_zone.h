/* availability-zone: a text that INFO server and HELLO show, for clients that prefer servers nearby. */
#pragma once

#include "base/info_row.h"

#include <stddef.h>

void availability_zone_setup(void); /* after config_setup: adds the option */
void availability_zone_start(void); /* main thread, the configuration was read */

/* Copies the text; returns its size, 0: there is none. Any thread. */
enum { AVAILABILITY_ZONE_BYTES_MOST = 256 };
size_t availability_zone_copy(char text[AVAILABILITY_ZONE_BYTES_MOST]);

extern const struct info_row availability_zone_info[];
