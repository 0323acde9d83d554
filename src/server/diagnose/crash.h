/* The crash report: written to the log when a thread faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) or an assertion
 * fails. It has the stacks of all threads, registers, the running command, INFO, and a memory test. It takes no lock
 * and no memory, since the thread may have failed with any lock held, or inside of the allocator. So INFO has only
 * those fields that need neither (crash_facts.h). Parts that depend on the least come first. A fault inside the report
 * ends it, and so does half a minute. */
#pragma once

/* By the main thread, before there are others, and after they have ended; the log is set up. */
void crash_setup(void);
void crash_teardown(void);
