/* Processes that the server starts and lets go: who has ended is waited for, so that none stays as a zombie. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { REAPER_MOST = 64 };

void reaper_setup(void); /* main thread, before the workers start */
bool reaper_has_room(void);
void reaper_add(pid_t pid); /* any thread; there was room */
void reaper_look(void);     /* worker 0, now and then; no lock held */
void reaper_teardown(void); /* main thread, the workers have ended: ends those that still run */
