/* Runs the commands of a stream that is always obeyed, such as an append-only file: without ACL, without limits of
 * memory, and not journaled. Nothing expires until a command says so. The worker is alone: its thread owns the gate. */
#pragma once

#include "server/durable/aof_load.h"

extern const struct applier apply_functions;
