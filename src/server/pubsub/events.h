/* Keyspace events: messages about what happened to keys, in channels __keyspace@<db>__:<key> and
 * __keyevent@<db>__:<event>, as far as notify-keyspace-events wants them.
 *
 * Noted by the worker while the key's stripe is held, and published in that order before it is released: telling.h. */
#pragma once

#include "base/compiler.h"
#include "base/rows.h"
#include "server/core/lifecycle.h"

extern const struct lifecycle events_lifecycle;

struct store;
struct worker;

void events_setup(void); /* after config_setup: adds the option */

/* Notes one of no class: it is told to whoever wants any by name. The name lives as long as the program. The worker's
 * thread, inside of the gate. */
struct slice;
void events_note_always(struct worker *worker, unsigned db, struct slice key, const char *event);
void events_tell_noted(struct worker *worker); /* for telling.c; the stripes of what was noted are held */
