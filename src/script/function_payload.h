/* All libraries as bytes, for FUNCTION DUMP and RESTORE. The payload has the records that RDB files have for libraries,
 * followed by version and checksum as in payloads of DUMP. */
#pragma once

#include "base/buffer.h"
#include "script/function_host.h"

/* Appends the payload. Inside the gate. */
void function_payload_write(struct buffer *out);
/* Loads all libraries of the payload or none, and tells that, as NULL, and then each. False: `error` has the reply.
 * Exclusive. */
must_check bool function_payload_restore(struct script_host *host, struct slice payload, enum functions_policy policy,
                                         void (*tell)(const struct library *library, void *context), void *context,
                                         struct buffer *error);
