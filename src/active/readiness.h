/* Whether clients should come to this node: KEYDB.ACTIVE READY, the fields of INFO that clients read as the state of
 * links, and -MASTERDOWN where replica-serve-stale-data is no. An active node serves whatever its links say, unless
 * that option and replica-quorum want links. */
#pragma once

#include "server/core/lifecycle.h"

extern const struct lifecycle readiness_lifecycle;

enum readiness {
    READINESS_FULL,
    READINESS_LOADS,      /* data is being loaded */
    READINESS_LACKS_LINKS /* as many as replica-quorum wants */
};

enum readiness readiness_now(void);               /* any thread */
const char *readiness_text(enum readiness state); /* a few words */
