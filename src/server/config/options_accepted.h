/* Options that other servers of the family have and this one accepts without acting on them: they can be set and read
 * back, so that configurations written for the family load. What would silently promise something (an append-only file,
 * a cluster) can only be given with the value that promises nothing. Who makes one work gives it a row of its own, and
 * takes it out here. */
#pragma once

#include "base/rows.h"

#include <stdbool.h>
#include <stddef.h>

const struct option_row *options_accepted(size_t *count); /* made at the first call, before the workers start */
const char *options_accepted_reason(const struct option_row *row); /* NULL: it has an effect */
void options_accepted_teardown(void);                              /* after the workers have ended */
