/* The identity of this run of the program. Any thread reads it. */
#pragma once

#include <stdint.h>

enum { IDENTITY_SIZE = 40 }; /* hex digits of an id */

/* Sets all ids and the start time. Main thread, before the workers start. */
void identity_setup(void);

const char *identity_run_id(void);
uint64_t identity_start_us(void); /* monotonic */
