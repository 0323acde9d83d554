/* scan.h: modes that walk through all keys: --scan, --bigkeys, --memkeys, --hotkeys. */
#pragma once

#include "tools/cli/session.h"

/* Each returns the exit code. */
int scan_run(struct session *session);
int scan_run_sizes(struct session *session); /* --bigkeys, or --memkeys with MODE_MEMORY_KEYS */
int scan_run_hot(struct session *session);
