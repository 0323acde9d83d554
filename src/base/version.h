/* Names and versions of this program. Clients choose commands by redis_version, so it is the version of Redis whose
 * commands are supported. keydb_version is our own. */
#pragma once

#define KEYDB_VERSION "7.0.0" /* follows 6.3.4; INFO keydb_version, --version, the log */
#define KEYDB_VERSION_NUMBER 0x00070000
#define KEYDB_REDIS_VERSION "7.4.0" /* INFO redis_version, HELLO version */
#define KEYDB_REDIS_VERSION_NUMBER 0x00070400

/* Facts about the build. The Makefile may define better ones. */
#ifndef KEYDB_GIT_SHA1
#define KEYDB_GIT_SHA1 "00000000"
#endif
#ifndef KEYDB_GIT_DIRTY
#define KEYDB_GIT_DIRTY 0
#endif
