/* Keyspace events: messages about changes of keys in channels __keyspace@<db>__:<key> and __keyevent@<db>__:<event>,
 * as notify-keyspace-events selects them. Events of hashes also come with the fields that they are about, each as its
 * size, a colon and its bytes, with commas in between:
 *
 *     channel                                     message
 *     __subkeyspace@<db>__:<key>                  <event>|<fields>
 *     __subkeyevent@<db>__:<event>                <size of the key>:<key>|<fields>
 *     __subkeyspaceitem@<db>__:<key>\n<field>     <event>
 *     __subkeyspaceevent@<db>__:<event>|<key>     <fields>
 *
 * The worker notes them while the key's stripe is held, and publishes them in that order before it is released:
 * telling.h. */
#pragma once

#include "base/compiler.h"
#include "base/rows.h"
#include "server/core/lifecycle.h"

extern const struct lifecycle events_lifecycle;

struct store;
struct worker;

void events_setup(void); /* after config_setup: adds the option */

/* Notes an event of no class: it is published if any events by name are. `event` must be a constant text. The worker's
 * thread, inside of the gate. */
struct slice;
void events_note_always(struct worker *worker, unsigned db, struct slice key, const char *event);
void events_tell_noted(struct worker *worker); /* for telling.c; the stripes of what was noted are held */
