/* Users that the configuration file declares, in lines "user NAME RULE...", and what the ACL begins with. In the main
 * thread, before the workers start; CONFIG REWRITE later. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>

extern const struct config_directive acl_user_directive;

/* When the configuration was read: requirepass, then the users of `aclfile` or those declared. False: they cannot be
 * taken; the log says why. */
must_check bool acl_start(void);
void acl_declared_teardown(void);
