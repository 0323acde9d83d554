/* The listening sockets: opened at start, all or none, and replaced when CONFIG SET changes port, tls-port or bind.
 * Every worker watches all of them. */
#pragma once

#include "server/core/lifecycle.h"

extern const struct lifecycle listeners_lifecycle;
