/* Keys with deadlines that clients of a replica have set (replica-read-only no). The master knows nothing of them, so
 * they expire here; all other keys of a replica wait for the master's word. */
#pragma once

#include "server/core/lifecycle.h"

#include <stdint.h>

extern const struct lifecycle local_keys_lifecycle;

/* With the gate owned: the role, or replica-read-only, has changed. */
void local_keys_update(void);
uint64_t local_keys_count(void); /* any thread */
