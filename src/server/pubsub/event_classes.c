#include "server/pubsub/event_classes.h"

#include "store/store.h"

#include <stdio.h>
#include <string.h>

_Atomic int64_t option_notify_events; /* global: option storage */

#define EVERY_CLASS                                                                                                    \
    (EVENT_GENERIC | EVENT_STRING | EVENT_LIST | EVENT_SET | EVENT_HASH | EVENT_ZSET | EVENT_EXPIRED | EVENT_EVICTED | \
     EVENT_STREAM | EVENT_MODULE)

/* In the order of CONFIG GET. `A` combines the classes before it, except EVENT_NEW. */
static const struct {
    char letter;
    int64_t bits;
} letters[] = {
    {'A', EVERY_CLASS},       {'g', EVENT_GENERIC},      {'$', EVENT_STRING},
    {'l', EVENT_LIST},        {'s', EVENT_SET},          {'h', EVENT_HASH},
    {'z', EVENT_ZSET},        {'x', EVENT_EXPIRED},      {'e', EVENT_EVICTED},
    {'t', EVENT_STREAM},      {'d', EVENT_MODULE},       {'n', EVENT_NEW},
    {'K', EVENTS_BY_KEY},     {'E', EVENTS_BY_NAME},     {'m', EVENT_KEY_MISS},
    {'o', EVENT_OVERWRITTEN}, {'c', EVENT_TYPE_CHANGED}, {'S', FIELDS_BY_KEY},
    {'T', FIELDS_BY_NAME},    {'I', FIELDS_BY_FIELD},    {'V', FIELDS_BY_NAME_AND_KEY},
};

static int64_t bits_of(char letter)
{
    for (size_t i = 0; i < countof(letters); i++) {
        if (letters[i].letter == letter)
            return letters[i].bits;
    }
    return 0;
}

bool event_classes_set(const struct option_row *row, const struct slice *words, size_t count, char *error,
                       size_t error_size)
{
    int64_t bits = 0;

    (void)row;
    if (count != 1) {
        snprintf(error, error_size, "wrong number of arguments");
        return false;
    }
    for (size_t i = 0; i < words[0].size; i++) {
        int64_t more = bits_of(words[0].data[i]);

        if (more == 0) {
            snprintf(error, error_size, "Invalid event class character. Use 'Ag$lshzxeKEtmdnocSTIV'.");
            return false;
        }
        bits |= more;
    }
    atomic_store_explicit(&option_notify_events, bits, memory_order_relaxed);
    return true;
}

void event_classes_get(const struct option_row *row, struct buffer *buffer)
{
    int64_t bits = OPTION_GET(option_notify_events);
    int64_t told = 0;

    (void)row;
    if ((bits & EVERY_CLASS) == EVERY_CLASS)
        told = EVENT_NEW;
    for (size_t i = 0; i < countof(letters); i++) {
        if ((bits & letters[i].bits) != letters[i].bits || (told & letters[i].bits) == letters[i].bits)
            continue;
        buffer_printf(buffer, "%c", letters[i].letter);
        told |= letters[i].bits;
    }
}
