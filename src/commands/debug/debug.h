/* DEBUG: inspects the server and gives tests control of it. One command whose subcommands are rows of debug.c; admin.c
 * declares it. */
#pragma once

#include "server/command/command.h"

struct request;

void cmd_debug(struct request *request);
enum access_class debug_access_of(const struct slice *args, uint32_t arg_count); /* an access_class_fn */
bool debug_find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions); /* a keys_fn */

/* Stops reading the journal if DEBUG JOURNAL START was given, and ends DEBUG HOLD. When the workers have ended, before
 * the server is destroyed. */
void debug_teardown(void);
