/* Runs commands of a stream that must be obeyed, such as an append only file: without ACL, without limits of memory,
 * without an echo in the journal; nothing expires until a command says so. The worker is alone: its thread owns the
 * gate. */
#pragma once

#include "server/durable/aof_load.h"

extern const struct applier apply_functions;
