/* A snapshot on its way from the connection to the thread that loads it. The connection's thread adds bytes and never
 * waits; the loader's thread reads and may wait. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "persist/byte_io.h"

#include <stdbool.h>
#include <stddef.h>

struct sync_pipe;

/* The reader calls `on_room` when it has caught up with a full pipe. */
struct sync_pipe *sync_pipe_create(void (*on_room)(void));
void sync_pipe_destroy(struct sync_pipe **handle); /* nobody reads any more; accepts NULL; leaves NULL */

/* --- the writing thread --- */

void sync_pipe_add(struct sync_pipe *pipe, struct slice bytes);
bool sync_pipe_is_full(struct sync_pipe *pipe); /* add no more until on_room */
/* Nothing follows. Otherwise than with STATUS_OK reading fails with this status at once. Only the first call counts. */
void sync_pipe_end(struct sync_pipe *pipe, enum status status);

/* --- the reading thread --- */

struct byte_source *sync_pipe_source(struct sync_pipe *pipe);
bool sync_pipe_would_wait(struct byte_source *source); /* no byte is there, and it has not ended */
