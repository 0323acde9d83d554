/* What a crash report tells of the client at work and of the server. It is made of what can be read without a lock, and
 * of a stack's few KiB, as the thread that failed may have held any lock, also one of the memory allocator. */
#pragma once

void crash_facts_setup(void); /* main thread, before the workers start */

/* All async-signal-safe, by the thread that failed. */
void crash_say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* into the log; a line at most */
void crash_facts_client(void);
void crash_facts_info(void);
