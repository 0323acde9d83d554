/* rename-command OLD NEW in a configuration file: clients call a command NEW from then on; "" takes it away. */
#pragma once

#include "server/config/config.h"

extern const struct config_directive command_rename_directive;
