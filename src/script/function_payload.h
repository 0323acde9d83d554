/* All libraries as bytes: FUNCTION DUMP and RESTORE. The payload is the records that RDB files have for libraries, one
 * after the other, with version and checksum behind them as in payloads of DUMP. */
#pragma once

#include "base/buffer.h"
#include "script/function_host.h"

/* Appends the payload. Inside the gate. */
void function_payload_write(struct buffer *out);
/* Loads what is in the payload: all of it or nothing. False: `error` has the reply. Exclusive. */
must_check bool function_payload_restore(struct script_host *host, struct slice payload, enum functions_policy policy,
                                         struct buffer *error);
