#include "server/pubsub/events.h"

#include "base/assert.h"
#include "base/gate.h"
#include "server/config/config.h"
#include "server/core/lifecycle.h"
#include "server/core/server.h"
#include "server/pubsub/event_classes.h"
#include "server/pubsub/pubsub.h"
#include "server/pubsub/telling.h"

/* A note of a worker: this struct, then the key's bytes. A note of the fields that an event is about comes behind that
 * of the event; there each field follows as a size_t and its bytes. */
struct noted {
    const char *event; /* lives as long as the program */
    size_t key_size;
    unsigned db;
    uint32_t field_count; /* 0: a note of an event */
};

/* A worker's; its own thread's. */
static struct state {
    struct buffer notes; /* keyspace events of this moment: see struct noted */
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
    const struct noted noted = {event, key.size, db, 0};

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
    const int64_t bits = OPTION_GET(option_notify_events);
    struct worker *worker = worker_self();

    (void)observer;
    if ((bits & event_class) == 0 || (bits & EVENTS_BY_ANY) == 0 || worker == NULL || wanted_by_nobody())
        return;
    access_assert_holds(access, access_stripe_of(access, key));
    append(worker, db, key->name, event);
}

static void note_fields(struct store_observer *observer, const struct access *access, unsigned db,
                        const struct key *key, const char *event, const struct slice *fields, uint32_t count,
                        uint32_t step)
{
    const struct noted noted = {event, key->name.size, db, count};
    struct worker *worker = worker_self();
    struct buffer *notes;

    (void)observer;
    assert(count != 0 && event != NULL);
    if (worker == NULL || wanted_by_nobody())
        return;
    access_assert_holds(access, access_stripe_of(access, key));
    notes = &of(worker)->notes;
    buffer_append(notes, &noted, sizeof(noted));
    buffer_append_slice(notes, key->name);
    for (uint32_t i = 0; i < count; i++) {
        const struct slice field = fields[(size_t)i * step];

        buffer_append(notes, &field.size, sizeof(field.size));
        buffer_append_slice(notes, field);
    }
    telling_note(worker, notes->size);
}

static struct store_observer observer = {.event = note, .fields = note_fields}; /* global: const after start */

/* The bits that the store has to know. */
static uint32_t observed_classes(int64_t bits)
{
    uint32_t classes = 0;

    if ((bits & EVENTS_BY_ANY) != 0)
        classes = (uint32_t)bits & (EVENT_FIELDS - 1);
    if ((bits & FIELDS_BY_ANY) != 0 && (bits & EVENT_HASH) != 0)
        classes |= EVENT_FIELDS;
    return classes;
}

static const char *apply(const struct option_row *row)
{
    struct server *server = server_instance();

    gate_assert_alone();
    (void)row;
    if (server != NULL)
        store_set_observed(server->store, OBSERVE_CHANGES - 1, observed_classes(OPTION_GET(option_notify_events)));
    return NULL;
}

void events_setup(void)
{
    static const struct option_row rows[] = {
        ROW_SPECIAL("notify-keyspace-events", event_classes_set, event_classes_get, NULL, OPTION_MUTABLE,
                    "Classes of events that are published: letters of g$lshzxetdmnocA, with K, E, S, T, I or V.",
                    .apply = apply),
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

/* As they are in messages: "size:field,size:field". */
static void append_fields(struct buffer *text, const char *at, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t size;

        memcpy(&size, at, sizeof(size));
        at += sizeof(size);
        buffer_printf(text, "%s%zu:", i != 0 ? "," : "", size);
        buffer_append(text, at, size);
        at += size;
    }
}

/* A channel for each field. A key with a newline has none: nobody could tell where its field begins. */
static void publish_by_field(struct worker *worker, const struct noted *noted, struct slice key, const char *at,
                             struct buffer *channel)
{
    size_t head;

    if (memchr(key.data, '\n', key.size) != NULL)
        return;
    buffer_clear(channel);
    buffer_printf(channel, "__subkeyspaceitem@%u__:", noted->db);
    buffer_append_slice(channel, key);
    buffer_append(channel, "\n", 1);
    head = channel->size;
    for (uint32_t i = 0; i < noted->field_count; i++) {
        size_t size;

        memcpy(&size, at, sizeof(size));
        at += sizeof(size);
        channel->size = head;
        buffer_append(channel, at, size);
        (void)pubsub_publish(worker, TOPIC_CHANNEL, buffer_slice(channel), slice_from_text(noted->event));
        at += size;
    }
}

/* `fields`: as append_fields makes them. No event has a bar in its name. */
static void publish_fields(struct worker *worker, const struct noted *noted, struct slice key, const char *at,
                           struct slice fields, struct buffer *channel)
{
    const int64_t bits = OPTION_GET(option_notify_events);
    struct buffer message = {0};

    if ((bits & FIELDS_BY_KEY) != 0) {
        buffer_clear(channel);
        buffer_printf(channel, "__subkeyspace@%u__:", noted->db);
        buffer_append_slice(channel, key);
        buffer_printf(&message, "%s|", noted->event);
        buffer_append_slice(&message, fields);
        (void)pubsub_publish(worker, TOPIC_CHANNEL, buffer_slice(channel), buffer_slice(&message));
    }
    if ((bits & FIELDS_BY_NAME) != 0) {
        buffer_clear(channel);
        buffer_printf(channel, "__subkeyevent@%u__:%s", noted->db, noted->event);
        buffer_clear(&message);
        buffer_printf(&message, "%zu:", key.size);
        buffer_append_slice(&message, key);
        buffer_append(&message, "|", 1);
        buffer_append_slice(&message, fields);
        (void)pubsub_publish(worker, TOPIC_CHANNEL, buffer_slice(channel), buffer_slice(&message));
    }
    if ((bits & FIELDS_BY_FIELD) != 0)
        publish_by_field(worker, noted, key, at, channel);
    if ((bits & FIELDS_BY_NAME_AND_KEY) != 0) {
        buffer_clear(channel);
        buffer_printf(channel, "__subkeyspaceevent@%u__:%s|", noted->db, noted->event);
        buffer_append_slice(channel, key);
        (void)pubsub_publish(worker, TOPIC_CHANNEL, buffer_slice(channel), fields);
    }
    buffer_fini(&message);
}

/* Returns where the next note begins. */
static const char *publish_noted_fields(struct worker *worker, const struct noted *noted, struct slice key,
                                        const char *at, struct buffer *channel)
{
    struct buffer fields = {0};

    append_fields(&fields, at, noted->field_count);
    publish_fields(worker, noted, key, at, buffer_slice(&fields), channel);
    buffer_fini(&fields);
    for (uint32_t i = 0; i < noted->field_count; i++) {
        size_t size;

        memcpy(&size, at, sizeof(size));
        at += sizeof(size) + size;
    }
    return at;
}

void events_tell_noted(struct worker *worker)
{
    struct buffer events = of(worker)->notes, channel = {0};

    if (LIKELY(events.size == 0))
        return;
    worker_assert_inside(worker);
    buffer_init(&of(worker)->notes);
    for (const char *at = events.data, *end = at + events.size; at != end;) {
        struct noted noted;
        struct slice key;

        memcpy(&noted, at, sizeof(noted));
        key = slice_make(at + sizeof(noted), noted.key_size);
        at = key.data + key.size;
        if (noted.field_count == 0)
            publish(worker, &noted, key, &channel);
        else
            at = publish_noted_fields(worker, &noted, key, at, &channel);
        assert(at <= end);
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
