/* The last words of a broken server: a report in the log when a thread faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL,
 * SIGABRT) or an assertion fails: stacks of all threads, registers, the command at work, INFO, a check of the memory.
 * It is made without a lock and without memory, since the thread may have failed with any lock held, or inside of the
 * allocator: INFO has only what can be told so (crash_facts.h). What needs least of the ruins comes first; a fault
 * inside the report, or a report that does not come to its end within half a minute, ends it. */
#pragma once

/* By the main thread, before there are others, and after they have ended; the log is set up. */
void crash_setup(void);
void crash_teardown(void);
