/* notify-keyspace-events: letters for the events that are published.
 *
 *     K channels by key, E channels by event; g $ l s h z x e t d m n classes (store/store.h), A = g$lshzxetd */
#pragma once

#include "base/buffer.h"
#include "base/rows.h"

#include <stdatomic.h>
#include <stdint.h>

enum { EVENTS_BY_KEY = 1 << 16, EVENTS_BY_NAME = 1 << 17 }; /* in addition to the bits of enum event_class */

extern _Atomic int64_t option_notify_events; /* global: option storage; bits of enum event_class and the two above */

/* The functions of the option's row. */
bool event_classes_set(const struct option_row *row, const struct slice *words, size_t count, char *error,
                       size_t error_size);
void event_classes_get(const struct option_row *row, struct buffer *buffer);
