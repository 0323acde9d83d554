/* The facts about the running command's client and about the server in a crash report. It reads without locks and uses
 * a few KiB of the stack, since the thread that failed may have held any lock, also one of the memory allocator. */
#pragma once

/* All async-signal-safe, by the thread that failed. */
void crash_say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* writes at most one line to the log */
void crash_facts_client(void);
void crash_facts_info(void);
