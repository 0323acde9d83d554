/* Reaps processes that the server has started and does not wait for, so that none stays as a zombie. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { REAPER_MOST = 64 };

void reaper_setup(void); /* main thread, before the workers start */
bool reaper_has_room(void);
void reaper_add(pid_t pid); /* any thread; call reaper_has_room first */
void reaper_look(void);     /* worker 0, now and then; no lock held: reaps processes that have ended */
void reaper_teardown(void); /* main thread, the workers have ended: ends the processes that still run */
