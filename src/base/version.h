/* What this program calls itself. Clients decide by redis_version which commands they may use, so that is the version
 * of the protocol's family whose commands are here; keydb_version is our own count. */
#pragma once

#define KEYDB_VERSION "7.0.0"       /* our own, after 6.3.4: INFO keydb_version, --version, the log */
#define KEYDB_REDIS_VERSION "7.4.0" /* INFO redis_version, HELLO version */
#define KEYDB_REDIS_VERSION_NUMBER 0x00070400

/* What the build says about itself; the Makefile may define better ones. */
#ifndef KEYDB_GIT_SHA1
#define KEYDB_GIT_SHA1 "00000000"
#endif
#ifndef KEYDB_GIT_DIRTY
#define KEYDB_GIT_DIRTY 0
#endif
