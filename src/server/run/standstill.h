/* DEBUG SLEEP: the whole server does nothing for a while, as one of a single thread would.
 *
 * While it lasts nobody is answered, not even where a command needs no key. What came meanwhile is all taken up before
 * the first answer to any of it leaves: so whoever gets one finds done what others had sent before, also those whose
 * clients another worker has. (Unless a worker is kept from it for STANDSTILL_PATIENCE_US.) */
#pragma once

#include <stdint.h>

struct lifecycle;
struct worker;

enum { STANDSTILL_PATIENCE_US = 100 * 1000 };

/* From a command that is alone with the data, in its worker's thread. */
void standstill(struct worker *worker, int64_t us);

extern const struct lifecycle standstill_lifecycle;
