/* notify-keyspace-events: letters for the events that are published.
 *
 *     K channels by key, E channels by event; g $ l s h z x e t d m n o c classes (store/store.h), A = g$lshzxetd
 *
 * Events of hashes (h) are also published with their fields:
 *
 *     S channels by key, T by event, I by key and field, V by event and key */
#pragma once

#include "base/buffer.h"
#include "base/rows.h"

#include <stdatomic.h>
#include <stdint.h>

/* In addition to the bits of enum event_class. */
enum {
    EVENTS_BY_KEY = 1 << 24,
    EVENTS_BY_NAME = 1 << 25,
    FIELDS_BY_KEY = 1 << 26,
    FIELDS_BY_NAME = 1 << 27,
    FIELDS_BY_FIELD = 1 << 28,
    FIELDS_BY_NAME_AND_KEY = 1 << 29
};
#define EVENTS_BY_ANY (EVENTS_BY_KEY | EVENTS_BY_NAME)
#define FIELDS_BY_ANY (FIELDS_BY_KEY | FIELDS_BY_NAME | FIELDS_BY_FIELD | FIELDS_BY_NAME_AND_KEY)

extern _Atomic int64_t option_notify_events; /* global: option storage; bits of enum event_class and those above */

/* The functions of the option's row. */
bool event_classes_set(const struct option_row *row, const struct slice *words, size_t count, char *error,
                       size_t error_size);
void event_classes_get(const struct option_row *row, struct buffer *buffer);
