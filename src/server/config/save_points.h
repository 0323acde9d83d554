/* `save`: pairs of seconds and changes, each a reason to save. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

void save_points_setup(void);    /* after config_setup: adds the option */
void save_points_teardown(void); /* main thread, after the workers have ended */
/* While the configuration file is read each line adds pairs; the first one takes the place of the defaults. Main
 * thread, before the workers start. */
void save_points_reading(bool reading);

bool save_points_exist(void);
/* Is one met? *seconds and *changes tell which. */
bool save_points_due(int64_t since_s, uint64_t changed, int64_t *seconds, int64_t *changes);
