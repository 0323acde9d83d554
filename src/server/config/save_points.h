/* The option `save`: pairs of seconds and changes after which the data is saved. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

void save_points_setup(void);    /* after config_setup: adds the option */
void save_points_teardown(void); /* main thread, after the workers have ended */
/* While the configuration file is read, each line adds pairs; the first line replaces the defaults. Main thread, before
 * the workers start. */
void save_points_reading(bool reading);

bool save_points_exist(void);
/* True if a save point is reached; *seconds and *changes are its pair. */
bool save_points_due(int64_t since_s, uint64_t changed, int64_t *seconds, int64_t *changes);
