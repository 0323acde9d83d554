/* Options of Redis and KeyDB that this server accepts but ignores: they can be set and read, so that existing
 * configuration files load. An option that would promise something (a cluster) accepts only the value that promises
 * nothing. To implement such an option, give it a row of its own and remove it here. */
#pragma once

#include "base/rows.h"

#include <stdbool.h>
#include <stddef.h>

const struct option_row *options_accepted(size_t *count); /* created by the first call, before the workers start */
const char *options_accepted_reason(const struct option_row *row); /* why it has no effect; NULL: it has one */
void options_accepted_teardown(void);                              /* after the workers have ended */
