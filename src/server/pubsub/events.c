#include "server/pubsub/events.h"

#include "base/assert.h"
#include "base/gate.h"
#include "server/config/config.h"
#include "server/core/lifecycle.h"
#include "server/core/server.h"
#include "server/pubsub/event_classes.h"
#include "server/pubsub/pubsub.h"
#include "server/pubsub/telling.h"

/* A note of a worker: this struct, then the key's bytes. */
struct noted {
    const char *event; /* lives as long as the program */
    size_t key_size;
    unsigned db;
};

/* A worker's; its own thread's. */
static struct state {
    struct buffer notes; /* keyspace events of this moment: struct noted, then the key */
} CACHE_ALIGNED states[WORKERS_MOST + 1];

static struct state *of(const struct worker *worker)
{
    assert(worker->index <= WORKERS_MOST);
    return &states[worker->index];
}

static bool wanted_by_nobody(void)
{
    return topics_count(TOPIC_CHANNEL) == 0 && topics_count(TOPIC_PATTERN) == 0;
}

static void append(struct worker *worker, unsigned db, struct slice key, const char *event)
{
    const struct noted noted = {event, key.size, db};

    worker_assert_inside(worker);
    assert(event != NULL);
    buffer_append(&of(worker)->notes, &noted, sizeof(noted));
    buffer_append_slice(&of(worker)->notes, key);
    telling_note(worker, of(worker)->notes.size);
}

void events_note_always(struct worker *worker, unsigned db, struct slice key, const char *event)
{
    worker_assert_self(worker);
    if ((OPTION_GET(option_notify_events) & EVENTS_BY_NAME) != 0 && !wanted_by_nobody())
        append(worker, db, key, event);
}

static void note(struct store_observer *observer, const struct access *access, unsigned db, const struct key *key,
                 enum event_class event_class, const char *event)
{
    struct worker *worker = worker_self();

    (void)observer;
    if ((OPTION_GET(option_notify_events) & event_class) == 0 || worker == NULL || wanted_by_nobody())
        return;
    access_assert_holds(access, access_stripe_of(access, key));
    append(worker, db, key->name, event);
}

static struct store_observer observer = {.event = note}; /* global: const after start */

static const char *apply(const struct option_row *row)
{
    const int64_t bits = OPTION_GET(option_notify_events);
    struct server *server = server_instance();
    uint32_t classes = (bits & (EVENTS_BY_KEY | EVENTS_BY_NAME)) != 0 ? (uint32_t)bits & (OBSERVE_CHANGES - 1) : 0;

    gate_assert_alone();
    (void)row;
    if (server != NULL)
        store_set_observed(server->store, OBSERVE_CHANGES - 1, classes);
    return NULL;
}

void events_setup(void)
{
    static const struct option_row rows[] = {
        ROW_SPECIAL("notify-keyspace-events", event_classes_set, event_classes_get, NULL, OPTION_MUTABLE,
                    "Classes of events that are published: letters of g$lshzxetdmnA, with K or E.", .apply = apply),
    };

    gate_assert_main_alone();
    config_add_rows(rows, countof(rows));
}

static bool start(struct server *server)
{
    gate_assert_main_alone();
    store_observe(server->store, &observer);
    (void)apply(NULL);
    return true;
}

static void publish(struct worker *worker, const struct noted *noted, struct slice key, struct buffer *channel)
{
    const int64_t bits = OPTION_GET(option_notify_events);

    if ((bits & EVENTS_BY_KEY) != 0) {
        buffer_clear(channel);
        buffer_printf(channel, "__keyspace@%u__:", noted->db);
        buffer_append_slice(channel, key);
        (void)pubsub_publish(worker, TOPIC_CHANNEL, buffer_slice(channel), slice_from_text(noted->event));
    }
    if ((bits & EVENTS_BY_NAME) != 0) {
        buffer_clear(channel);
        buffer_printf(channel, "__keyevent@%u__:%s", noted->db, noted->event);
        (void)pubsub_publish(worker, TOPIC_CHANNEL, buffer_slice(channel), key);
    }
}

void events_tell_noted(struct worker *worker)
{
    struct buffer events = of(worker)->notes, channel = {0};

    if (LIKELY(events.size == 0))
        return;
    worker_assert_inside(worker);
    buffer_init(&of(worker)->notes);
    for (size_t at = 0; at < events.size;) {
        struct noted noted;

        memcpy(&noted, events.data + at, sizeof(noted));
        at += sizeof(noted);
        publish(worker, &noted, slice_make(events.data + at, noted.key_size), &channel);
        at += noted.key_size;
        assert(at <= events.size);
    }
    buffer_fini(&channel);
    buffer_fini(&events);
}

static void fini(struct worker *worker)
{
    buffer_fini(&of(worker)->notes);
}

const struct lifecycle events_lifecycle = {
    .worker_fini = fini,
    .server_start = start,
};
