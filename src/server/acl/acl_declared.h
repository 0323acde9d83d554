/* Users of the configuration file, in lines "user NAME RULE...", and the users at start. In the main thread, before the
 * workers start; CONFIG REWRITE later. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>

extern const struct config_directive acl_user_directive;

/* After the configuration was read: sets requirepass, then the users of `aclfile` or of the configuration. False: they
 * are invalid; the reason is in the log. */
must_check bool acl_start(void);
void acl_declared_teardown(void);
