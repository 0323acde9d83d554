/* Client tracking in broadcast mode: clients get invalidations for all changes of keys with certain prefixes. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "server/core/lifecycle.h"

extern const struct lifecycle broadcast_lifecycle;

struct client_ref;
struct tracking;
struct worker;

/* Its thread, the stripe is held. */
void broadcast_note(struct worker *worker, struct slice name, struct client_ref *by);
void broadcast_tell_noted(struct worker *worker); /* for telling.c; the stripes of what was noted are held */

/* The client's worker. Does nothing if the prefix was entered before. */
void broadcast_enter(struct tracking *tracking, struct slice prefix);
void broadcast_leave(struct tracking *tracking); /* leaves all prefixes */
