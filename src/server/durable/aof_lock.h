/* One server has the append only file: two that write into one folder would each throw away what the other has. Who
 * uses the files holds a lock on `.appendfilename.lock` beside them. The kernel lets go of it when the process ends, in
 * whatever way; the file, which names the process, goes when the lock is released in order.
 *
 * Any thread; never under a spinlock. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>

/* One more user of the files in this process: the first takes the lock. False: another process has it, also after
 * wait_ms; the log says which. Where no file can be made or locked there it is true, too: who uses the folder next
 * hears what is wrong with it. */
must_check bool aof_lock_acquire(unsigned wait_ms);
void aof_lock_release(void);
void aof_lock_leave(void); /* the process ends: whatever its users */
