/* The lock of the append-only file: only one server uses a folder, since two servers would overwrite each other's
 * files. The user of the files holds a lock on `.appendfilename.lock` beside them. The kernel releases it when the
 * process ends in any way. The lock file contains the process id, and is removed when the lock is released in order.
 *
 * Any thread; never under a spinlock. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>

/* Adds a user of the files in this process; the first user takes the lock. False: another process has it, also after
 * wait_ms; the log says which. True also if no file can be created or locked there: the next use of the folder reports
 * the problem. */
must_check bool aof_lock_acquire(unsigned wait_ms);
void aof_lock_release(void);
void aof_lock_leave(void); /* at the end of the process: releases the lock whatever its users */
